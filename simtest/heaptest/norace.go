//go:build !race

package heaptest

// Raced reports whether the race detector is on. It makes everything several times slower, and adds to each allocation.
const Raced = false
