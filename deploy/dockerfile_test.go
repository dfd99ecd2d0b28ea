package deploy

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheImage builds the image and runs its program.
func TestTheImage(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	instructions := readDockerfile(t)
	im := buildImage(t, instructions, map[string]string{"TARGETOS": runtime.GOOS, "TARGETARCH": runtime.GOARCH, "VERSION": "v9.9.9"})
	m := readManifest(t)

	t.Run("is built as with make", func(t *testing.T) {
		t.Parallel()
		flags := regexp.MustCompile(`-trimpath -tags \S+ -gcflags '[^']*' -ldflags "[^"]*"`).FindString(readFile(t, filepath.Join(context, "Makefile")))
		flags = strings.ReplaceAll(flags, "$(VERSION)", "$VERSION")
		run := instructions[slices.IndexFunc(instructions, func(in instruction) bool { return in.name == "RUN" })].args
		if flags == "" || !strings.Contains(run, "go build "+flags+" ") || !strings.Contains(run, "CGO_ENABLED=0 ") {
			t.Errorf("%q is not in: %s", flags, run)
		}
		// The compiler is that of go.mod.
		version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, filepath.Join(context, "go.mod")))[1]
		if from := instructions[slices.IndexFunc(instructions, func(in instruction) bool { return in.name == "FROM" })].args; !strings.Contains(from, "golang:"+version+".") {
			t.Errorf("go.mod wants Go %s: FROM %s", version, from)
		}
	})
	t.Run("holds nothing else", func(t *testing.T) { // before another test adds volumes
		var files []string
		err := filepath.WalkDir(im.root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(name, im.root))
			}
			return err
		})
		program := []string{"/usr/bin/mesh-agent"}
		papers := []string{"/usr/share/mesh-agent/mesh-agent.cdx.json", "/usr/share/mesh-agent/notices.txt"}
		if err != nil || !slices.Equal(files, append(program, papers...)) || im.base != "scratch" {
			t.Errorf("from %s: %v, %v", im.base, files, err)
		}
		if !slices.Equal(im.fromBase, []string{"/etc/ssl/certs/ca-certificates.crt"}) {
			t.Errorf("also %v", im.fromBase)
		}
		if !slices.Equal(im.entrypoint, program) || !slices.Equal(im.cmd, []string{"run"}) || !slices.Contains(im.env, "PATH=/usr/bin") {
			t.Errorf("runs %v %v with %v", im.entrypoint, im.cmd, im.env)
		}
	})
	t.Run("is static", func(t *testing.T) {
		t.Parallel()
		f, err := elf.Open(im.program())
		check(t, err)
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("it has a segment of type %s", p.Type)
			}
		}
		if libraries, err := f.ImportedLibraries(); err != nil && !errors.Is(err, elf.ErrNoSymbols) || len(libraries) > 0 || f.Section(".dynamic") != nil {
			t.Errorf("it needs %v, %v", libraries, err)
		}
	})
	t.Run("knows its version", func(t *testing.T) {
		t.Parallel()
		if out := output(t, im.program(), "version"); !strings.HasPrefix(out, "mesh-agent v9.9.9") {
			t.Errorf("%s", out)
		}
	})
	t.Run("has the licenses and the bill of materials", func(t *testing.T) {
		t.Parallel()
		papers := filepath.Join(im.root, "usr/share/mesh-agent")
		if out := output(t, im.program(), "version", "--notices"); out != readFile(t, filepath.Join(papers, "notices.txt")) || !strings.Contains(out, "Apache License") {
			t.Error("the notices in the image are not those of the program")
		}
		var bill struct {
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ PURL string }
		}
		decode(t, readFile(t, filepath.Join(papers, "mesh-agent.cdx.json")), &bill)
		if len(bill.Components) < 50 || bill.Metadata.Component.Version != "v9.9.9" {
			t.Errorf("the bill of materials: %+v", bill)
		}
		if !slices.ContainsFunc(bill.Components, func(c struct{ PURL string }) bool { return strings.HasPrefix(c.PURL, "pkg:npm/preact@") }) {
			t.Errorf("the bill of materials has nothing of the page: %+v", bill)
		}
	})
	t.Run("has the flags of the manifest", func(t *testing.T) {
		t.Parallel()
		help := output(t, im.program(), "run", "--help")
		m.checkFlags(t, "run", help, "MESH_AGENT_SERVICE_CIDR mesh-agent/service-cidr?", "MESH_AGENT_POD_CIDR mesh-agent/pod-cidr?", "MESH_AGENT_CLUSTER_SIZE mesh-agent/cluster-size?")
		readMember(t).checkMember(t, help)
		for mode, d := range readDeployments(t) {
			d.checkFlags(t, mode, output(t, im.program(), mode, "--help"))
		}
	})
	t.Run("runs as the manifest's user", func(t *testing.T) {
		t.Parallel()
		m.checkUser(t, im.user)
	})
	t.Run("serves the mesh of a Secret", func(t *testing.T) {
		t.Parallel()
		serveSecret(t, im, m)
	})
}

// TestTheBasesArePinned: each is nothing, a stage, or an image by its digest.
func TestTheBasesArePinned(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}$`)
	var bases, stages []string
	for _, in := range readDockerfile(t) {
		if in.name != "FROM" {
			continue
		}
		words := without(strings.Fields(in.args), "--")
		bases = append(bases, words[0])
		if words[0] != "scratch" && !slices.Contains(stages, words[0]) && !pinned.MatchString(words[0]) {
			t.Errorf("FROM %s: a tag can be moved; name the image by its digest too (make image-base)", words[0])
		}
		stages = append(stages, words[len(words)-1])
	}
	if len(bases) != 2 {
		t.Errorf("the bases are %v", bases)
	}
}

// TestTheBaseIsAskedFor: the script writes the digest from the registry, refuses an invalid
// digest, and takes another tag.
func TestTheBaseIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "deploy"))
	mkdir(t, filepath.Join(dir, "bin"))
	for _, name := range []string{"Dockerfile", "deploy/image-base"} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(readFile(t, filepath.Join(context, name))), 0o700))
	}
	ask := func(answer string, args ...string) (string, error) {
		t.Helper()
		docker := "#!/bin/sh\n[ \"$1 $2 $3\" = \"buildx imagetools inspect\" ] && echo " + answer + "\n"
		check(t, os.WriteFile(filepath.Join(dir, "bin", "docker"), []byte(docker), 0o700))
		cmd := exec.Command(filepath.Join(dir, "deploy/image-base"), args...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	if out, err := ask(digest, "1.26.9"); err != nil || !strings.Contains(readFile(t, filepath.Join(dir, "Dockerfile")), "golang:1.26.9@"+digest+" AS build") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := ask(digest); err != nil || !strings.Contains(out, "is what the registry has") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := ask("latest"); err == nil {
		t.Errorf("it takes what is no digest: %s", out)
	}
}

// program is where the entry point's program is.
func (im image) program() string { return filepath.Join(im.root, im.entrypoint[0]) }

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// tempDir is a directory into which others than its owner may go.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "image")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	return dir
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o755))
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	check(t, err)
	return string(text)
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// without leaves out the words that begin so.
func without(words []string, prefix string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, prefix) })
}
