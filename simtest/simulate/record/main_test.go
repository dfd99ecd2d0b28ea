package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheRecordIsUpToDate: the page has the record of the files, and each of its commands names a test.
func TestTheRecordIsUpToDate(t *testing.T) {
	t.Chdir("../../..")
	read := func(file string) string {
		text, err := os.ReadFile(file)
		waittest.Must(t, err)
		return string(text)
	}
	text := read(page)
	want, err := withRecord(text, read(campaigns), read(found))
	waittest.Must(t, err)
	if text != want {
		t.Errorf("%s has another record than its files; run: go run ./simtest/simulate/record -seeds 0", page)
	}
	all := commands(text)
	if len(all) < 9 {
		t.Errorf("%s has the commands %q only", page, all)
	}
	for _, command := range all {
		fields := strings.Fields(command) // go test ./PACKAGE -run NAME
		files, err := filepath.Glob(fields[2] + "/*_test.go")
		waittest.Must(t, err)
		tests := ""
		for _, file := range files {
			tests += read(file)
		}
		if !regexp.MustCompile(`func Test\w*` + fields[4]).MatchString(tests) {
			t.Errorf("%s: there is no such test", command)
		}
	}
}
