package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/google/renameio/v2"
)

// write renders all templates, and then replaces the files that are different. When one of them cannot
// be rendered, none is replaced.
func (r *renderer) write(ctx context.Context) error {
	texts := make([][]byte, len(r.targets))
	for i, t := range r.targets {
		var err error
		if texts[i], err = r.text(ctx, t.template); err != nil {
			return err
		}
	}
	var errs []error
	for i, t := range r.targets {
		if r.dryRun {
			fmt.Fprintf(r.out, "# %s\n%s", t.file, texts[i])
			continue
		}
		changed, err := r.replace(ctx, t.file, texts[i])
		errs = append(errs, err)
		if changed {
			r.say("wrote %s (%d bytes)", t.file, len(texts[i]))
			r.pending = r.exec != ""
		}
	}
	return errors.Join(errs...)
}

// text renders one template.
func (r *renderer) text(ctx context.Context, file string) ([]byte, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &data{ctx: ctx, client: r.client, zone: r.zone, used: r.used}
	t, err := template.New(filepath.Base(file)).Funcs(d.functions()).Option("missingkey=error").Parse(string(source))
	if err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out.Bytes(), nil
}

const newFileMode = 0o644

// replace writes a file as a whole, unless it has this text already. Its mode and its owner stay.
func (r *renderer) replace(ctx context.Context, file string, text []byte) (changed bool, err error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return false, usagef("%s is no regular file, and cannot be replaced", file)
	}
	before, err := os.ReadFile(file)
	switch {
	case err == nil && bytes.Equal(before, text):
		return false, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return false, err
	case r.refuseEmpty && len(bytes.TrimSpace(text)) == 0:
		return false, fmt.Errorf("%s would be empty: it stays as it is (--refuse-empty)", file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return false, err
	}
	next, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)), renameio.WithPermissions(newFileMode), renameio.IgnoreUmask(), renameio.WithExistingPermissions())
	if err != nil {
		return false, err
	}
	defer func() { _ = next.Cleanup() }() // nothing is left of it once it has replaced the file
	if info != nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = next.Chown(int(owner.Uid), int(owner.Gid)) // only root can give it to somebody else
		}
	}
	if _, err := next.Write(text); err != nil {
		return false, err
	}
	if err := next.Sync(); err != nil {
		return false, err
	}
	if r.check != "" {
		if err := r.command(ctx, r.check, "FILE="+next.Name()); err != nil {
			return false, fmt.Errorf("%s stays as it is: --check: %w", file, err)
		}
	}
	if err := next.CloseAtomicallyReplace(); err != nil {
		return false, err
	}
	return true, syncDirectory(filepath.Dir(file))
}

// syncDirectory makes a renaming survive a crash of the machine.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // not every file system knows it
		return err
	}
	return nil
}
