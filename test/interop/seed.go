package interop

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// SeedEnv gives the seed of random objects, to repeat a run.
const SeedEnv = "INTEROP_SEED"

// Seed returns the seed of the test's random objects, and prints it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(SeedEnv); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("to repeat: %s=%d", SeedEnv, seed)
	return seed
}
