package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/internal/cli/status"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// part is a part of a report. Files that it adds before it fails stay in the archive.
type part struct {
	name    string
	collect func(context.Context) error
}

// parts returns all parts, the most useful first.
func (r *report) parts() []part {
	parts := []part{
		{"version.json", func(context.Context) error { return r.object("version.json", "this program", r.program) }},
		{"environment.txt", func(context.Context) error { return r.environment() }},
		{"status", func(context.Context) error { return r.addStatus() }},
		{"config.json", func(ctx context.Context) error {
			v, err := client.Get[api.Settings](ctx, r.client, "v1", "debug", "config")
			if err != nil {
				return err
			}
			return r.object("config.json", "the agent's settings in force", v)
		}},
		r.text("metrics.txt", "the agent's metrics", "text/plain", "metrics"),
		r.text("goroutines.txt", "the stacks of the agent's goroutines", "text/plain", "v1", "debug", "goroutines"),
		r.text("openapi.json", "the description of the API, with its version", "application/openapi+json", "openapi.json"),
		{"mesh", func(ctx context.Context) error { return r.meshDirectory(ctx) }},
	}
	for _, name := range resource.Names() {
		parts = append(parts, part{"lists/" + name, func(ctx context.Context) error { return r.list(ctx, name) }})
	}
	return parts
}

func (r *report) object(name, about string, v any) error {
	text, err := safetext.JSON(v, "  ")
	if err == nil {
		r.archive.add(name, about, append(text, '\n'))
	}
	return err
}

func (r *report) addStatus() error {
	if r.statusErr != nil {
		return r.statusErr
	}
	var text bytes.Buffer
	if err := status.Write(&text, printer.Style{}, status.Page{Status: r.status, Now: r.now}); err != nil {
		return err
	}
	r.archive.add("status.txt", "the status of the mesh, for a person", text.Bytes())
	return r.object("status.json", "the same as data", r.status)
}

// text returns a part that contains an answer of the agent, unchanged.
func (r *report) text(name, about, media string, path ...string) part {
	return part{name, func(ctx context.Context) error {
		body, err := r.client.Text(ctx, media, path...)
		if err != nil {
			return err
		}
		defer body.Close()
		text, err := io.ReadAll(body)
		if len(text) > 0 {
			r.archive.add(name, about, text)
		}
		return err
	}}
}

// list adds a list, one file for each page: only one page is in memory at a time.
func (r *report) list(ctx context.Context, name string) error {
	q, format := client.Query{}, printer.NewFormat(printer.JSON)
	for file, total := 1, 0; ; file++ {
		q.Limit = min(api.MaxLimit, r.options.maxItems-total)
		page, err := client.List[json.RawMessage](ctx, r.client, name, q)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		n, err := printer.Structured(&text, format, printer.Listing[json.RawMessage]{Revision: page.Revision, Items: page.All(ctx), Next: page.Next})
		if err != nil {
			return err
		}
		total += n
		about, cut := printer.Counted(n, "item", "items"), page.Next() != "" && total >= r.options.maxItems
		if cut {
			about += ", cut: there are more (--max-items)"
		}
		r.archive.add(fmt.Sprintf("lists/%s-%03d.json", name, file), about, text.Bytes())
		if q.Cursor = page.Next(); q.Cursor == "" || cut {
			return nil
		}
	}
}

func (r *report) environment() error {
	var lines []string
	for _, pair := range r.environ() {
		name, value, _ := strings.Cut(pair, "=")
		setting, ours := strings.CutPrefix(name, "MESH_AGENT_")
		if !ours {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(setting, "_", "-"))
		shown := clientfile.LeftOut
		if r.flags[flag] {
			shown = config.Harmless(flag, value)
		}
		lines = append(lines, name+"="+shown+"\n")
	}
	slices.Sort(lines)
	r.archive.add("environment.txt", "variables of this command that are settings", []byte(strings.Join(lines, "")))
	return nil
}

// archive is a .tar.gz with all files in one folder. The first error is kept for close: later writes do nothing.
type archive struct {
	gzip     *gzip.Writer
	tar      *tar.Writer
	folder   string
	now      time.Time
	manifest bytes.Buffer
	err      error
}

func newArchive(w io.Writer, folder string, now time.Time) *archive {
	z := gzip.NewWriter(w)
	return &archive{gzip: z, tar: tar.NewWriter(z), folder: folder, now: now}
}

// ManifestName is the name of the file that lists all files. It is written last.
const ManifestName = "manifest.txt"

// add writes a file, with a line for it in the manifest.
func (a *archive) add(name, about string, content []byte) {
	fmt.Fprintf(&a.manifest, "%-40s %9d  %s\n", name, len(content), about)
	a.write(name, content)
}

func (a *archive) write(name string, content []byte) {
	if a.err != nil {
		return
	}
	a.err = a.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: a.folder + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: a.now,
	})
	if a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

// close ends the archive, with the manifest, and returns the first error.
func (a *archive) close() error {
	a.write(ManifestName, a.manifest.Bytes())
	if a.err != nil {
		return a.err
	}
	return errors.Join(a.tar.Close(), a.gzip.Close())
}
