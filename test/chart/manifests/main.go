// Command manifests writes the plain manifests of deploy/ from the chart.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/mesh-agent/mesh-agent/test/chart"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests DEPLOY, the directory with the folder chart")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the chart's copies first, as templates may read them.
func write(deploy string) error {
	if err := chart.CopyMonitoring(deploy); err != nil {
		return err
	}
	c, err := loader.Load(filepath.Join(deploy, "chart"))
	if err != nil {
		return err
	}
	texts, err := chart.Plain(c)
	if err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(deploy, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
