package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/notices"
)

// TestTheNoticesAreOfWhatIsLinked: there are notices for each module in the linked version, with every text.
func TestTheNoticesAreOfWhatIsLinked(t *testing.T) {
	t.Parallel()
	var now bytes.Buffer
	if err := collect(&now, agent); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := notices.Write(&packed); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "base", "notices", "notices.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if packed.String() != string(text) {
		t.Error("run `make notices`: the program has another text than notices.txt")
	}
	if modules, want := listed(packed.String()), listed(now.String()); !slices.Equal(modules, want) {
		t.Errorf("run `make notices`; the modules are\n%s\nwant\n%s", strings.Join(modules, "\n"), strings.Join(want, "\n"))
	}
	if now.String() != packed.String() {
		t.Error("run `make notices`: texts have changed")
	}
	for _, part := range []string{standard, "npm:preact v", "npm:uplot v", "go.etcd.io/etcd/client/v3 v3.", "Apache License", "Redistribution and use in source and binary forms"} {
		if !strings.Contains(packed.String(), part) {
			t.Errorf("there is nothing of %q", part)
		}
	}
}

// listed are the lines of modules, without the numbers of their texts.
func listed(text string) (modules []string) {
	for _, found := range regexp.MustCompile(`(?m)^(\S+ v\S+)( \[\d+\])+$`).FindAllStringSubmatch(text, -1) {
		modules = append(modules, found[1])
	}
	return modules
}

// TestWhatANoticeIs: nested notices count if a package below them is linked, equal texts are listed once, and a module
// without a notice is an error.
func TestWhatANoticeIs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"a/LICENSE": "mine", "a/x/NOTICE.txt": "also", "a/x/y/z.go": "", "a/other/LICENSE": "not linked", "a/license.go": "code",
		"b/COPYING.md": "\r\nmine \r\n", "c/readme": "",
	} {
		write(name, text)
	}
	n := collection{numbers: make(map[string]int)}
	at := func(name string) string { return filepath.Join(root, name) }
	if err := n.add("a v1", &part{at("a"), []string{at("a/x/y")}}); err != nil {
		t.Fatal(err)
	}
	if err := n.add("b v1", &part{at("b"), []string{at("b")}}); err != nil {
		t.Fatal(err)
	}
	if err := n.add("c v1", &part{at("c"), []string{at("c")}}); err == nil || !strings.Contains(err.Error(), "no license") {
		t.Errorf("%v", err)
	}
	if want := []string{"a v1 [1] [2]", "b v1 [1]"}; !slices.Equal(n.modules, want) {
		t.Errorf("%q, want %q", n.modules, want)
	}
	if text := string(n.text(agent)); !strings.Contains(text, "[1]\na v1: LICENSE\nb v1: COPYING.md\n\nmine\n") || strings.Contains(text, "not linked") {
		t.Error(text)
	}
}
