package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheCommandLine: the same as that of `make run`, with more flags if they are given.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(`(?m)^run: build\n\t@(.*)$`).FindSubmatch(makefile)
	if run == nil {
		t.Fatal("the Makefile has no such target")
	}
	line := commandLine("bin/mesh-sim", "bin/mesh-agent", "127.0.0.1:5300", "", "", nil)
	if got, want := strings.Join(line, " "), string(run[1]); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	line = commandLine("sim", "agent", "", "127.0.0.1:1", "/s", []string{"--clusters", "1"})
	if got, want := strings.Join(line, " "), "sim --churn 2 --command-log {tmp}/agent.log --clusters 1 -- agent run --clustermesh-config {dir} --dns  --xds unix:{tmp}/xds.sock --listen 127.0.0.1:1 --socket /s"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestFind: the simulator in the directory of the program has priority over that of the PATH, also if the program is a
// link.
func TestFind(t *testing.T) {
	programs, path, links := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	program := func(dir, name string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/true\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	program(programs, "mesh-agent")
	self := filepath.Join(links, "agent")
	if err := os.Symlink(filepath.Join(programs, "mesh-agent"), self); err != nil {
		t.Fatal(err)
	}
	if _, err := find(self); err == nil || !strings.Contains(err.Error(), "mesh-sim is neither in the directory of "+programs+"/mesh-agent nor in the PATH") {
		t.Errorf("without one: %v", err)
	}
	for _, dir := range []string{path, programs} {
		want := program(dir, "mesh-sim")
		if got, err := find(self); got != want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
