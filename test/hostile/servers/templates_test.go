package servers

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// allowedLines are the allowed forms of a line of a file, by its template.
var allowedLines = map[string]*regexp.Regexp{
	"nginx.tmpl":   regexp.MustCompile(`^(|#[ -~]*|upstream "?[A-Za-z0-9_.:/-]+"? \{|    (server "?[0-9A-Za-z.:\[\]]+"?( [a-z_]+(=[0-9a-z]+)?)*|[a-z_]+ [A-Za-z0-9_ .:/-]+);|\})$`),
	"haproxy.tmpl": regexp.MustCompile(`^(|#[ -~]*|listen mesh-agent-servers|    stats uri /|backend [A-Za-z0-9_.:-]+|    balance roundrobin|    server [A-Za-z0-9_.:-]+ [0-9A-Za-z.:\[\]]+( [a-z0-9]+)*|    [a-z-]+( [A-Za-z0-9_.:-]+)*)$`),
	"hosts.tmpl":   regexp.MustCompile(`^(|#[ -~]*|[0-9a-f.:]+( [A-Za-z0-9.-]+)+)$`),
}

// judgeTemplates: the files of the ready templates have only the intended lines, and the programs that read them accept
// them.
func (w *world) judgeTemplates(t *testing.T) {
	templates, err := filepath.Glob("../../../docs/templates/*.tmpl")
	must(t, err)
	if len(templates) < 4 {
		t.Fatalf("only %v", templates)
	}
	dir := t.TempDir()
	for _, template := range templates {
		name := filepath.Base(template)
		file := filepath.Join(dir, name+".out")
		out, err := exec.Command(theProgram(t), "render", "--once", "--socket", w.agent.socket, "-t", template+"="+file).CombinedOutput()
		if !visible(string(out)) {
			t.Errorf("%s: render prints %.300q", name, out)
		}
		if err != nil {
			t.Errorf("%s: %v: %.500s", name, err, out)
			continue
		}
		text, err := os.ReadFile(file)
		must(t, err)
		judgeFile(t, name, string(text))
	}
	w.nginxTakes(t, filepath.Join(dir, "nginx.tmpl.out"))
	haproxyTakes(t, filepath.Join(dir, "haproxy.tmpl.out"))
}

func judgeFile(t *testing.T, name, text string) {
	t.Helper()
	if !visible(text) {
		t.Errorf("%s: there are control characters in the file", name)
	}
	form := allowedLines[name]
	if form == nil {
		var content any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	wrong, lines := 0, strings.Split(text, "\n")
	for _, line := range lines {
		ok := form.MatchString(line)
		if first, _, _ := strings.Cut(line, " "); name == "hosts.tmpl" && ok && line != "" && line[0] != '#' {
			addr, err := netip.ParseAddr(first)
			ok = err == nil && (addr.IsLoopback() || strings.HasPrefix(first, "172.") || strings.HasPrefix(first, "10.9."))
		}
		if !ok {
			if wrong++; wrong <= 5 {
				t.Errorf("%s has the line %.200q", name, line)
			}
		}
	}
	t.Logf("%s: %d lines, %d of them wrong", name, len(lines), wrong)
}

// nginxTakes checks the file with nginx, if it is installed.
func (w *world) nginxTakes(t *testing.T, upstreams string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "nginx.conf")
	must(t, os.WriteFile(config, []byte("daemon off; error_log stderr; pid "+dir+"/pid;\nevents {}\nhttp {\n  access_log off;\n  include "+upstreams+";\n}\n"), 0o600))
	takes(t, "nginx", "-t", "-c", config)
}

func haproxyTakes(t *testing.T, file string) {
	t.Helper()
	config := file + ".cfg"
	must(t, os.WriteFile(config, []byte("defaults\n    mode http\n    timeout connect 1s\n    timeout client 1m\n    timeout server 1m\nfrontend all\n    bind 127.0.0.1:16997\n"), 0o600))
	takes(t, "haproxy", "-c", "-f", config, "-f", file)
}

// takes runs the check of a program, if it is installed.
func takes(t *testing.T, program string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		path = "/usr/sbin/" + program
		if _, err := os.Stat(path); err != nil {
			t.Logf("%s is missing: make consumers installs it", program)
			return
		}
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%.1000s", program, err, out)
	}
}
