// Command report writes docs/interop.md from the results of the tests of
// interoperability, and fails when the matrix is not all green.
//
//	report -results DIR -releases 1.19.0,1.20.2 [-o FILE]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/test/interop"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run() error {
	results := flag.String("results", os.Getenv(interop.ResultsEnv), "the folder of the results")
	releases := flag.String("releases", interop.Newest, "the releases of Cilium that were tested, oldest first")
	version := flag.String("version", "unknown", "the version of mesh-agent that was tested")
	out := flag.String("o", "", "the file to write; standard output without it")
	flag.Parse()
	if *results == "" {
		return errors.New("no results given: use -results DIR, which `make interop` fills")
	}
	all, err := read(*results)
	if err != nil {
		return err
	}
	r := report{
		Date: time.Now().UTC(), Version: *version,
		Releases: strings.Split(*releases, ","),
		results:  all,
	}
	text := r.markdown()
	if *out == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		return err
	}
	return r.verdict()
}
