package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// change is the new text of a file, before it replaces the old one.
type change struct {
	file      string // as on the command line
	path      string // after symbolic links, which are kept
	old, text []byte
	exists    bool
	next      *renameio.PendingFile // the file with the new text; nil if none is needed
	inPlace   error                 // why the file cannot be replaced as a whole; nil if it can be, as far as known
}

const newFileMode = 0o644

// prepare writes a text to a temporary file in the directory of the file that it is for. It returns nil if that file
// has this text already.
func (r *renderer) prepare(file string, text []byte) (*change, error) {
	c := &change{file: file, text: text}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return nil, usagef("%s is no regular file, and cannot be replaced", file)
	}
	if c.path, err = behindLinks(file); err != nil {
		return nil, err
	}
	c.old, err = os.ReadFile(c.path)
	c.exists = err == nil
	switch {
	case c.exists && bytes.Equal(c.old, text):
		return nil, nil
	case !c.exists && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case r.refuseEmpty && len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("%s would be empty: it stays as it is (--refuse-empty)", file)
	}
	if err := c.create(info, r.check != ""); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

// behindLinks returns the file that a path leads to, also when it does not exist yet. It calls os.Stat first, so that
// the kernel decides whether to follow links of other users.
func behindLinks(path string) (string, error) {
	_, err := os.Stat(path)
	if err == nil {
		return filepath.EvalSymlinks(path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	to, err := os.Readlink(path)
	if err != nil { // no file and no link exists
		return path, nil
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return behindLinks(to)
}

// create writes the new file. When the directory is not writable, it writes a temporary file elsewhere, but only for
// a check.
func (c *change) create(info fs.FileInfo, checked bool) (err error) {
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c.next, err = renameio.NewPendingFile(c.path, renameio.WithTempDir(dir), renameio.WithPermissions(newFileMode), renameio.IgnoreUmask(), renameio.WithExistingPermissions())
	if err != nil && c.exists && cannotReplace(err) {
		c.inPlace = err
		if !checked {
			return nil
		}
		c.next, err = renameio.NewPendingFile(filepath.Join(os.TempDir(), filepath.Base(c.path)), renameio.WithTempDir(os.TempDir()))
	}
	if err != nil {
		return err
	}
	if info != nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && c.inPlace == nil {
			_ = c.next.Chown(int(owner.Uid), int(owner.Gid)) // only root can change the owner
		}
	}
	if _, err := c.next.Write(c.text); err != nil {
		return err
	}
	return c.next.Sync()
}

// cannotReplace reports whether an error means that a file cannot be replaced, although it may be writable: it is a
// mount point, or its directory is read-only or has another owner.
func cannotReplace(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// remove deletes the new file, unless it has replaced the old one.
func (c *change) remove() {
	if c.next != nil {
		_ = c.next.Cleanup()
	}
}

// checked runs the command of --check on the new file.
func (r *renderer) checked(ctx context.Context, c *change) error {
	if r.check == "" {
		return nil
	}
	if err := r.command(ctx, r.check, "FILE="+c.next.Name()); err != nil {
		return fmt.Errorf("%s stays as it is: --check: %w", c.file, err)
	}
	return nil
}

// replace replaces the old text by the new one: atomically, if possible.
func (r *renderer) replace(c *change) error {
	if c.inPlace == nil {
		err := c.next.CloseAtomicallyReplace()
		if err == nil {
			return syncDirectory(filepath.Dir(c.path))
		}
		if !c.exists || !cannotReplace(err) {
			return err
		}
		c.inPlace = err
	}
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(overwrite(f, c.old, c.text), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if !r.inPlace[c.file] {
		r.inPlace[c.file] = true
		why, _ := errors.AsType[syscall.Errno](c.inPlace)
		r.say("%s cannot be replaced as a whole (%v), because it is a mount or its directory is not writable. "+
			"It is written in place: for a moment, readers can see a part of the new text", c.file, why)
	}
	return nil
}

// overwritable is the part of an open file that overwrite needs.
type overwritable interface {
	WriteAt(text []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
}

// overwrite writes a text over another one. If that fails, for example because the file system is full, it restores
// the old text.
func overwrite(f overwritable, old, text []byte) error {
	err := writeOver(f, text, len(old))
	if err == nil {
		return nil
	}
	if again := writeOver(f, old, len(old)); again != nil {
		return fmt.Errorf("the file has a part of the new text: %w; its old text cannot be written again: %w", err, again)
	}
	return err
}

// writeOver first writes the part that makes the file longer, because this part may fail: then the old text still
// exists.
func writeOver(f overwritable, text []byte, length int) error {
	n := min(len(text), length)
	if len(text) > n {
		if _, err := f.WriteAt(text[n:], int64(n)); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(text[:n], 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		return err
	}
	return f.Sync()
}

// syncDirectory makes a rename survive a crash of the machine.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // not every file system supports it
		return err
	}
	return nil
}
