// Command papers writes what goes with the programs in a package: a man page for each command of
// mesh-agent and of mesh-sim, into DIR/man, and the completion of each shell, into DIR/completions.
// They are of the command lines themselves.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/simtest/sim/command"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: papers VERSION DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "writing man pages and completions:", err)
		os.Exit(1)
	}
}

// write writes everything. The date of the man pages is that of the sources, in seconds since 1970, so
// that they are the same whenever they are written; without one it is now.
func write(version, dir, date string) error {
	at := time.Now()
	if date != "" {
		seconds, err := strconv.ParseInt(date, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		at = time.Unix(seconds, 0).UTC()
	}
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	var errs []error
	for _, root := range []*cobra.Command{cli.New(version), command.New()} {
		root.DisableAutoGenTag = true
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd()
		header := &doc.GenManHeader{Section: "1", Source: root.Name() + " " + version, Manual: "Mesh agent", Date: &at}
		errs = append(errs, doc.GenManTree(root, header, man), writeCompletions(root, completions))
	}
	return errors.Join(errs...)
}

func writeCompletions(root *cobra.Command, dir string) error {
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(dir, root.Name()), true),
		root.GenZshCompletionFile(filepath.Join(dir, "_"+root.Name())),
		root.GenFishCompletionFile(filepath.Join(dir, root.Name()+".fish"), true),
	)
}
