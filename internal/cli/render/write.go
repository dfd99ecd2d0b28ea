package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
)

// write renders all templates, checks the new files, and then replaces the files that differ. When one template
// cannot be rendered, or a check fails, no file is replaced.
func (r *renderer) write(ctx context.Context) error {
	texts := make([][]byte, len(r.targets))
	for i, t := range r.targets {
		var err error
		if texts[i], err = r.text(ctx, t.template); err != nil {
			return err
		}
	}
	if r.dryRun {
		for i, t := range r.targets {
			fmt.Fprintf(r.out, "# %s\n%s", t.file, texts[i])
		}
		return nil
	}
	changes, err := r.changes(ctx, texts)
	defer func() {
		for _, c := range changes {
			c.remove()
		}
	}()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range changes {
		r.pending = r.exec != "" // also if it fails: the file may have changed
		if err := r.replace(c); err != nil {
			errs = append(errs, err)
			continue
		}
		r.say("wrote %s (%d bytes)", c.file, len(c.text))
	}
	return errors.Join(errs...)
}

// changes returns the files whose text changes, after all of them are checked. After an error, the caller must remove
// them, too.
func (r *renderer) changes(ctx context.Context, texts [][]byte) (all []*change, err error) {
	var errs []error
	for i, t := range r.targets {
		c, err := r.prepare(t.file, texts[i])
		errs = append(errs, err)
		if c != nil {
			all = append(all, c)
		}
	}
	for _, c := range all {
		errs = append(errs, r.checked(ctx, c))
	}
	return all, errors.Join(errs...)
}

// text renders one template.
func (r *renderer) text(ctx context.Context, file string) ([]byte, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &data{ctx: ctx, client: r.client, zone: r.zone, used: r.used, checks: r.checks}
	t, err := template.New(filepath.Base(file)).Funcs(d.functions()).Option("missingkey=error").Parse(string(source))
	if err != nil {
		return nil, usagef("%s: %w", file, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !r.allowControl {
		if err := checkOutput(out.Bytes()); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return out.Bytes(), nil
}
