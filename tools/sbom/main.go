// Command sbom prints the bill of materials of a Go program in the CycloneDX format:
// what the build recorded in the program itself, so that it is of this very file, and the
// npm packages of the page that is embedded in it. The same program gives the same bill.
//
// The library of CycloneDX writes it. Its command for Go programs, cyclonedx-gomod, knows no packages of npm, so that a
// program like this one had to add them, and needs 40 modules more, in the build of the image too.
//
//	go run ./tools/sbom -version v1.2.3 -npm ui/package-lock.json bin/mesh-agent > mesh-agent.cdx.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	version := flag.String("version", "", "version of the program; default: what the build recorded")
	lock := flag.String("npm", "", "package-lock.json of the embedded page; its packages for development are left out")
	flag.Parse()
	err := errors.New("want the path of one program")
	if flag.NArg() == 1 {
		err = write(os.Stdout, flag.Arg(0), *version, *lock)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bill of materials:", err)
		os.Exit(1)
	}
}

func write(to io.Writer, program, version, lock string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	sum, err := digest(program)
	if err != nil {
		return err
	}
	embedded, err := packages(lock)
	if err != nil {
		return err
	}
	e := cdx.NewBOMEncoder(to, cdx.BOMFileFormatJSON)
	e.SetPretty(true)
	return e.Encode(bill(info, version, sum, embedded))
}

func digest(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// bill lists the components of the program: each module as it was linked, the standard
// library of the compiler, and the embedded components.
func bill(info *debug.BuildInfo, version, sum string, embedded []cdx.Component) *cdx.BOM {
	if version == "" {
		version = info.Main.Version
	}
	b := cdx.NewBOM()
	main := module(info.Main.Path, version)
	main.Type, main.Name = cdx.ComponentTypeApplication, path.Base(info.Path)
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	settings := []cdx.Property{{Name: "go:version", Value: info.GoVersion}}
	for _, s := range info.Settings {
		settings = append(settings, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	main.Properties = &settings
	b.Metadata = &cdx.Metadata{Component: &main}
	components := []cdx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		as := m
		if m.Replace != nil {
			as = m.Replace
		}
		c := module(as.Path, as.Version)
		if as.Sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: as.Sum}}
		}
		components = append(components, c)
	}
	components = append(components, embedded...)
	b.Components = &components
	needs := make([]string, 0, len(components))
	for _, c := range components {
		needs = append(needs, c.BOMRef)
	}
	b.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return b
}

// module is a component with its name in vulnerability scanners.
func module(name, version string) cdx.Component {
	url := "pkg:golang/" + name + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url}
}
