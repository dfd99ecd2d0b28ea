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
	file      string // as the command line names it
	path      string // behind symbolic links, which stay
	old, text []byte
	exists    bool
	next      *renameio.PendingFile // it has the new text; nil if nobody needs it
	inPlace   error                 // why the file cannot be replaced as a whole; nil if it can be, as far as known
}

const newFileMode = 0o644

// prepare writes a text to a file of its own, beside the one that it is for. It is nil if that has this text already.
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

// behindLinks is the file that a path leads to, also where there is none yet. It asks os.Stat first, with which the
// kernel decides whether to follow links of other users.
func behindLinks(path string) (string, error) {
	_, err := os.Stat(path)
	if err == nil {
		return filepath.EvalSymlinks(path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	to, err := os.Readlink(path)
	if err != nil { // there is no link either
		return path, nil
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return behindLinks(to)
}

// create writes the new file. Where its directory takes no files, only a check needs one, elsewhere.
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
			_ = c.next.Chown(int(owner.Uid), int(owner.Gid)) // only root can give it to somebody else
		}
	}
	if _, err := c.next.Write(c.text); err != nil {
		return err
	}
	return c.next.Sync()
}

// cannotReplace reports whether an error means that a file cannot be replaced, though it may be writable: it is a
// mount of its own, or its directory is read-only or belongs to others.
func cannotReplace(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// remove leaves nothing of the new file, unless it has replaced the old one.
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

// replace lets the new text take the place of the old one: as a whole, where that is possible.
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

// overwritable is an open file.
type overwritable interface {
	WriteAt(text []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
}

// overwrite writes a text over another one. If that fails, for example because the file system is full, it writes
// the old text again.
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

// writeOver begins with what makes the file longer, which is what fails: the old text is still there then.
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
