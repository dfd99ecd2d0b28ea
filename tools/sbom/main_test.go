package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestTheBillIsOfTheProgram: the bill of this test's own program has each module that the compiler recorded, in that
// version, and does not change when it is made again.
func TestTheBillIsOfTheProgram(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := write(to, program, "v9.9.9", "../../ui/package-lock.json"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("it is another one the second time")
	}
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	if c := b.Metadata.Component; c.Version != "v9.9.9" || len(*c.Hashes) != 1 || !strings.HasPrefix(c.PackageURL, "pkg:golang/github.com/mesh-agent/mesh-agent@v9.9.9") {
		t.Errorf("%+v", c)
	}
	has := make(map[string]bool)
	for _, c := range *b.Components {
		has[c.PackageURL] = true
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	licenses, err := os.ReadDir("../../ui/licenses") // one file for each package in the page
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range licenses {
		name := strings.ReplaceAll(l.Name(), "+", "/")
		if scoped, is := strings.CutPrefix(name, "@"); is {
			name = "%40" + scoped
		}
		want = append(want, "pkg:npm/"+name)
	}
	for _, url := range want {
		if !has[url] {
			t.Errorf("there is no %s", url)
		}
	}
	if len(has) != len(want) || len(*(*b.Dependencies)[0].Dependencies) != len(want) || len(want) < 2 {
		t.Errorf("%d components, want %d", len(has), len(want))
	}
}

func TestWhatIsNoProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "x"} {
		if err := write(&bytes.Buffer{}, name, "", ""); err == nil {
			t.Errorf("%s has a bill", name)
		}
		if all, err := packages(name); err == nil {
			t.Errorf("%s has the packages %v", name, all)
		}
	}
}
