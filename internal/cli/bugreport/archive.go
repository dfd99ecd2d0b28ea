package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// archive is a .tar.gz with everything in one folder. The first error is kept
// for close: what comes after it goes nowhere.
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

// ManifestName is the file that lists all files, written last.
const ManifestName = "manifest.txt"

// add writes a file, with a line about it in the manifest.
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

// close ends the archive, with the manifest, and returns what went wrong with it.
func (a *archive) close() error {
	a.write(ManifestName, a.manifest.Bytes())
	if a.err != nil {
		return a.err
	}
	return errors.Join(a.tar.Close(), a.gzip.Close())
}
