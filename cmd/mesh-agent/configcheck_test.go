package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
)

// meshDirectory writes client files and returns their directory.
func meshDirectory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	const plain = "endpoints: ['http://127.0.0.1:1']\n"
	clean := meshDirectory(t, map[string]string{"c2": plain, "own": "endpoints: [broken"})
	warned := meshDirectory(t, map[string]string{"c2": "endpoints: ['http://192.0.2.1:1']\n"})
	faulty := meshDirectory(t, map[string]string{"c2": plain, "c3": "endpoints: []\n", "notes.txt": "x"})
	file := settingsFile(t, "cluster-name: own\nlisten: 127.0.0.1:1\nclustermesh-config: "+warned+"\n")
	for name, test := range map[string]struct {
		args     []string
		env      map[string]string
		code     int
		out, err string
	}{
		"clean":                     {[]string{clean, "--cluster-name=own"}, nil, 0, "1 cluster would be connected, 0 can not work, 1 entry ignored; 0 errors, 0 warnings", ""},
		"the own name from a file":  {[]string{clean, "--config", file}, nil, 0, "own cluster, which is no remote one", ""},
		"the own name from the env": {[]string{clean}, map[string]string{"MESH_AGENT_CLUSTER_NAME": "own"}, 0, "own cluster, which is no remote one", ""},
		"another own name":          {[]string{clean}, nil, 2, "yaml: line 1", ""},
		"strict and clean":          {[]string{clean, "--cluster-name=own", "--strict"}, nil, 0, "0 warnings", ""},
		"warnings":                  {[]string{warned}, nil, 0, "warning: endpoints: http://192.0.2.1:1 is not encrypted", ""},
		"strict":                    {[]string{warned, "--strict"}, nil, 1, "1 warning\n", ""},
		"the directory of the file": {[]string{"--config", file, "--strict"}, nil, 1, "192.0.2.1", ""},
		"the directory of a flag":   {[]string{"--config", file, "--clustermesh-config", faulty}, nil, 2, "at least one is needed", ""},
		"errors":                    {[]string{faulty}, nil, 2, "error:   endpoints: at least one is needed", ""},
		"what is ignored":           {[]string{faulty}, nil, 2, "notes.txt  no client file", ""},
		"no directory":              {[]string{"/nonexistent/mesh"}, nil, 2, "", "/nonexistent/mesh: no such file"},
		"a file":                    {[]string{file}, nil, 2, "", "not a directory"},
		"an ID without a name":      {[]string{clean, "--cluster-id=3"}, nil, 2, "", "--cluster-id: cannot use default cluster name"},
		"a bad settings file":       {[]string{clean, "--config=/nonexistent/x"}, nil, 2, "", "--config: open /nonexistent/x"},
		"two directories":           {[]string{clean, faulty}, nil, 2, "", "at most one DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := with(test.env, "", "").run(append([]string{"config", "check"}, test.args...)...)
			if got.code != test.code || !contains(got.out, test.out) || !contains(got.err, test.err) {
				t.Errorf("exit code %d, want %d\n%s%s", got.code, test.code, got.out, got.err)
			}
		})
	}
	for _, format := range []string{"json", "yaml"} {
		got := with(nil, "", "").run("config", "check", faulty, "-o", format)
		if got.code != exitUsage || !strings.Contains(got.out, "verdict") {
			t.Errorf("%s: %+v", format, got)
		}
	}
	var c clustermesh.Checked
	if err := json.Unmarshal([]byte(with(nil, "", "").run("config", "check", faulty, "-o", "json").out), &c); err != nil || c.Errors != 1 || len(c.Files) != 3 {
		t.Errorf("%v %+v", err, c)
	}
}

func TestGroupsOfCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]result{
		"config":       {0, "check", ""},
		"config chekc": {2, "", `unknown command "chekc"; did you mean check?`},
		"completion x": {2, "", "unknown command"},
	} {
		got := with(nil, "", "").run(strings.Fields(line)...)
		if got.code != want.code || !contains(got.out, want.out) || !contains(got.err, want.err) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
