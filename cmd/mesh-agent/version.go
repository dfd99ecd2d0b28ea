package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/notices"
	"github.com/mesh-agent/mesh-agent/internal/printer"
)

// release is set by the linker (-X main.release=v1.2.3) and never changed by the
// program.
var release string

// version is the version of this program.
func version() string { return buildVersion().Version }

// versionInfo says which program this is.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty when it was not built from a checkout
	Date     string `json:"date"`   // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildVersion reads what the linker and the Go tool recorded.
func buildVersion() versionInfo {
	v := versionInfo{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func newVersionCommand() *cobra.Command {
	var licenses bool
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if licenses && cmd.Flags().Changed("output") {
				return usagef("--notices is a text: -o does not go with it")
			}
			if licenses {
				_, err := io.WriteString(cmd.OutOrStdout(), notices.Text())
				return err
			}
			v := buildVersion()
			if format.Structured() {
				return format.Object(cmd.OutOrStdout(), v)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "mesh-agent %s", v.Version)
			if v.Commit != "" {
				fmt.Fprintf(cmd.OutOrStdout(), " (commit %.12s of %s)", v.Commit, v.Date)
			}
			fmt.Fprintf(cmd.OutOrStdout(), " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	cmd.Flags().BoolVar(&licenses, "notices", false, "show the licenses and notices of everything that is linked into this program, instead")
	return cmd
}
