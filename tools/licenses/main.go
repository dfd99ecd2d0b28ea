// Command collect prints the licenses of all modules that are linked into the agent
// of the image: those of the packages of cmd/mesh-agent on the image's platforms, of the page
// in it, and of the standard library. An argument names another program, such as mesh-sim. It
// reads only the module cache and makes no requests.
//
// The command go-licenses of Google would leave out the standard library, the page and the files PATENTS. It reads one
// platform at a time, and its report asks servers for addresses.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The programs of the project, and the one that the notices are of without an argument.
const (
	programs = "github.com/mesh-agent/mesh-agent/cmd/"
	agent    = "mesh-agent"
)

func architectures() []string { return []string{"amd64", "arm64"} }

func main() {
	if err := collect(os.Stdout, cmp.Or(strings.Join(os.Args[1:], " "), agent)); err != nil {
		fmt.Fprintln(os.Stderr, "collecting the licenses of what is linked:", err)
		os.Exit(1)
	}
}

func collect(to io.Writer, program string) error {
	parts, err := linked(program)
	if err != nil {
		return err
	}
	n := collection{numbers: make(map[string]int)}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if err := n.add(name, parts[name]); err != nil {
			return err
		}
	}
	_, err = to.Write(n.text(program))
	return err
}

// part is a module: where it is, and in which of its directories packages are that are linked.
type part struct {
	root string
	dirs []string
}

// standard is the name of the standard library. It has no version here: that is the
// compiler's, and its license stays the same.
const standard = "Go standard library"

func linked(program string) (map[string]*part, error) {
	parts := make(map[string]*part)
	for _, arch := range architectures() {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Root,Module", programs+program)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w: %s", err, complaint.String())
		}
		if err := read(out, parts); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// read adds the packages of an answer of go list.
func read(answer []byte, parts map[string]*part) error {
	for d := json.NewDecoder(bytes.NewReader(answer)); ; {
		var p struct {
			Dir, Root string
			Standard  bool
			Module    *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		name, root := standard, p.Root
		switch {
		case p.Standard:
		case p.Module == nil:
			return fmt.Errorf("the package in %s is of no module", p.Dir)
		case p.Module.Main:
			if err := ofPage(p.Module.Dir, parts); err != nil {
				return err
			}
			continue
		default:
			name, root = p.Module.Path+" "+p.Module.Version, p.Module.Dir
		}
		if parts[name] == nil {
			parts[name] = &part{root: root}
		}
		parts[name].dirs = append(parts[name].dirs, p.Dir)
	}
}

// ofPage adds what the page in the program is made of, in package ui: packages of npm, each with its
// license in a directory "NAME@VERSION", where a slash is a plus sign.
func ofPage(module string, parts map[string]*part) error {
	root := filepath.Join(module, "ui", "licenses")
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("the licenses of the page: %w", err)
	}
	for _, e := range entries {
		i := strings.LastIndex(e.Name(), "@")
		if i <= 0 {
			return fmt.Errorf("the licenses of the page: %s is not NAME@VERSION", e.Name())
		}
		name := "npm:" + strings.ReplaceAll(e.Name()[:i], "+", "/") + " v" + e.Name()[i+1:]
		parts[name] = &part{root: filepath.Join(root, e.Name())}
	}
	return nil
}

// collection has the collected licenses. It has each text once.
type collection struct {
	modules []string // lines, as they are written
	texts   []string
	owners  [][]string     // of each text, the files that are it
	numbers map[string]int // of each text, from 1
}

func (n *collection) add(name string, p *part) error {
	files, err := p.files()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: there is no license in %s: find out what it is", name, p.root)
	}
	var marks []string
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join(p.root, file))
		if err != nil {
			return err
		}
		text := plain(string(raw))
		if n.numbers[text] == 0 {
			n.texts, n.owners = append(n.texts, text), append(n.owners, nil)
			n.numbers[text] = len(n.texts)
		}
		i := n.numbers[text]
		n.owners[i-1] = append(n.owners[i-1], name+": "+file)
		if mark := fmt.Sprintf("[%d]", i); !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	n.modules = append(n.modules, name+" "+strings.Join(marks, " "))
	return nil
}

var isNotice = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// files are those of the module's root and of every directory from there to a package
// that is linked: some modules have code of others.
func (p *part) files() ([]string, error) {
	dirs := map[string]bool{p.root: true}
	for _, dir := range p.dirs {
		for ; len(dir) > len(p.root); dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
	}
	var files []string
	for dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || filepath.Ext(e.Name()) == ".go" || !isNotice.MatchString(e.Name()) {
				continue
			}
			file, err := filepath.Rel(p.root, filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			files = append(files, filepath.ToSlash(file))
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	return files, nil
}

// plain is a text without what differs for no reason between copies of a license: the
// ends of lines, and empty lines around it.
func plain(text string) string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		lines = append(lines, strings.TrimRight(line, " \t\n"))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

func (n *collection) text(program string) []byte {
	var b bytes.Buffer
	b.WriteString(program + " is made with the work of others. These modules are linked into it; the numbers are those of\n" +
		"the licenses and notices that follow.\n\n")
	for _, line := range n.modules {
		b.WriteString(line + "\n")
	}
	for i, text := range n.texts {
		fmt.Fprintf(&b, "\n%s\n[%d]\n", strings.Repeat("=", 80), i+1)
		for _, owner := range n.owners[i] {
			b.WriteString(owner + "\n")
		}
		b.WriteString("\n" + text)
	}
	return b.Bytes()
}
