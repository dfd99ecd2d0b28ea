package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// inModules comes before the name of a package in its path.
const inModules = "node_modules/"

// packages are those of a package-lock.json that are not for development alone, each version once, in the order of their
// paths; none without a file.
func packages(lock string) ([]cdx.Component, error) {
	if lock == "" {
		return nil, nil
	}
	data, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var file struct {
		Packages map[string]struct {
			Version, Integrity string
			Dev, Link          bool
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", lock, err)
	}
	var all []cdx.Component
	seen := make(map[string]bool)
	for _, path := range slices.Sorted(maps.Keys(file.Packages)) {
		p := file.Packages[path]
		at := strings.LastIndex(path, inModules)
		if at < 0 || p.Dev || p.Link { // the project itself, and its workspaces
			continue
		}
		name := path[at+len(inModules):]
		algorithm, digest, _ := strings.Cut(p.Integrity, "-")
		sum, err := base64.StdEncoding.DecodeString(digest)
		if err != nil || algorithm != "sha512" {
			return nil, fmt.Errorf("%s: %s has the integrity %q, want sha512-BASE64", lock, name, p.Integrity)
		}
		url := "pkg:npm/" + strings.ReplaceAll(name, "@", "%40") + "@" + p.Version
		if seen[url] {
			continue
		}
		seen[url] = true
		all = append(all, cdx.Component{
			BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: name, Version: p.Version, PackageURL: url,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}},
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no packages: is it a package-lock.json of version 2 or 3?", lock)
	}
	return all, nil
}
