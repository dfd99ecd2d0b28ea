package deploy

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// context is the directory that the image is built from.
const context = ".."

// instruction is one of a Dockerfile.
type instruction struct{ name, args string }

// readDockerfile takes a Dockerfile apart.
func readDockerfile(t *testing.T) (list []instruction) {
	t.Helper()
	text := strings.ReplaceAll(readFile(t, filepath.Join(context, "Dockerfile")), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		list = append(list, instruction{name, strings.TrimSpace(args)})
	}
	return list
}

// image is what came of a Dockerfile.
type image struct {
	root       string   // where its files are
	base       string   // FROM of the last stage
	fromBase   []string // copied from another stage, which has it from its own base
	env        []string
	user       string
	entrypoint []string
	cmd        []string
}

// buildImage does what a Dockerfile says, here instead of in a container: each
// stage is a directory, and what its base image would hold is not there.
func buildImage(t *testing.T, instructions []instruction, args map[string]string) image {
	t.Helper()
	ignored := readIgnored(t)
	var im image
	var workdir string
	roots := map[string]string{}
	for _, in := range instructions {
		switch in.name {
		case "FROM":
			words := without(strings.Fields(in.args), "--")
			im = image{root: tempDir(t), base: words[0]}
			workdir = "/"
			if len(words) == 3 {
				roots[words[2]] = im.root
			}
		case "WORKDIR":
			workdir = in.args
			mkdir(t, filepath.Join(im.root, workdir))
		case "ARG": // given, or else its default
			for _, word := range strings.Fields(in.args) {
				if name, value, ok := strings.Cut(word, "="); ok && args[name] == "" {
					args[name] = value
				}
			}
		case "COPY":
			words := strings.Fields(in.args)
			from, other := strings.CutPrefix(words[0], "--from=")
			if other {
				words = words[1:]
			}
			to := words[len(words)-1]
			if !path.IsAbs(to) {
				to = path.Join(workdir, to) + strings.Repeat("/", len(to)-len(strings.TrimSuffix(to, "/")))
			}
			for _, source := range words[:len(words)-1] {
				switch {
				case !other:
					copyIn(t, context, source, im.root, to, ignored)
				case exists(filepath.Join(roots[from], source)):
					copyIn(t, roots[from], source, im.root, to, func(string) bool { return false })
				default:
					im.fromBase = append(im.fromBase, source)
				}
			}
		case "RUN":
			command := regexp.MustCompile(`--mount=\S+`).ReplaceAllString(in.args, "")
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = filepath.Join(im.root, workdir)
			cmd.Env = os.Environ()
			for name, value := range args {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", command, err, out)
			}
		case "ENV":
			im.env = append(im.env, in.args)
		case "USER":
			im.user = in.args
		case "ENTRYPOINT":
			decode(t, in.args, &im.entrypoint)
		case "CMD":
			decode(t, in.args, &im.cmd)
		default:
			t.Fatalf("this test does not know %s", in.name)
		}
	}
	return im
}

// readIgnored reads .dockerignore: the last line that matches a path, or a
// directory that it is in, decides.
func readIgnored(t *testing.T) func(name string) bool {
	t.Helper()
	var patterns []string
	for line := range strings.Lines(readFile(t, filepath.Join(context, ".dockerignore"))) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	return func(name string) bool {
		ignored := false
		for _, p := range patterns {
			p, except := strings.CutPrefix(p, "!")
			for dir := filepath.ToSlash(name); dir != "."; dir = path.Dir(dir) {
				anywhere, ok := strings.CutPrefix(p, "**/")
				subject := dir
				if ok {
					subject = path.Base(dir)
				}
				if matches, err := path.Match(anywhere, subject); err != nil {
					t.Fatalf(".dockerignore: %s: %v", p, err)
				} else if matches {
					ignored = !except
				}
			}
		}
		return ignored
	}
}

// copyIn copies a file or the contents of a directory, as COPY does.
func copyIn(t *testing.T, from, source, root, to string, ignored func(string) bool) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(from, source), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inContext, err := filepath.Rel(from, name)
		if err != nil || ignored(inContext) {
			return err
		}
		target := filepath.Join(root, to)
		if below, err := filepath.Rel(filepath.Join(from, source), name); err != nil {
			return err
		} else if below != "." {
			target = filepath.Join(target, below)
		} else if strings.HasSuffix(to, "/") {
			target = filepath.Join(target, filepath.Base(source))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		mkdir(t, filepath.Dir(target))
		n++
		return os.WriteFile(target, data, info.Mode())
	})
	if err != nil || n == 0 {
		t.Fatalf("COPY %s: %d files, %v", source, n, err)
	}
}
