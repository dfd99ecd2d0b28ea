package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// DirectoryError is returned when a directory, or the path of the control socket, cannot be used: it is not a
// directory, cannot be created, or already has a file of the same name.
type DirectoryError struct{ Err error }

func (e *DirectoryError) Error() string { return e.Err.Error() }
func (e *DirectoryError) Unwrap() error { return e.Err }

// directory is a directory in which the simulator writes files. One that existed before may have other files, which are
// left alone.
type directory struct {
	path  string   // absolute
	made  []string // directories that were created, the deepest first
	owned []string // the simulator's files and directories in it, the latest first
}

// openDirectory creates the directory if it does not exist. names are the names that are going to be used, and must be
// free.
func openDirectory(path string, names []string) (*directory, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, &DirectoryError{fmt.Errorf("find directory %s: %w", path, err)}
	}
	d := &directory{path: absolute}
	for _, name := range names {
		if _, err := os.Lstat(d.file(name)); err == nil {
			return nil, &DirectoryError{fmt.Errorf("%s exists already: remove it, or choose another directory or other cluster names", d.file(name))}
		}
	}
	if err := d.make(); err != nil {
		return nil, &DirectoryError{errors.Join(err, d.remove())}
	}
	return d, nil
}

// file is the path of a name in the directory.
func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// make creates the directory with its parents, and records which were missing.
func (d *directory) make() error {
	var missing []string
	for p := d.path; ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a directory", p)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open directory %s: %w", d.path, err)
		}
		missing = append(missing, p)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], 0o700); err != nil {
			return fmt.Errorf("make directory %s: %w", d.path, err)
		}
		d.made = append([]string{missing[i]}, d.made...)
	}
	return nil
}

// mkdir makes a directory in this one.
func (d *directory) mkdir(name string) (string, error) {
	if err := os.Mkdir(d.file(name), 0o700); err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	d.owned = append([]string{d.file(name)}, d.owned...)
	return d.file(name), nil
}

// place creates a complete file atomically. It is written to a temporary directory first, in the same file system.
func (d *directory) place(temp, name string, data []byte, mode fs.FileMode) error {
	written := filepath.Join(temp, name)
	err := os.WriteFile(written, data, mode)
	if err == nil {
		err = os.Rename(written, d.file(name))
	}
	if err != nil {
		return fmt.Errorf("write a client file: %w", err)
	}
	d.disown(name)
	d.owned = append([]string{d.file(name)}, d.owned...)
	return nil
}

// take removes a file of the simulator.
func (d *directory) take(name string) error {
	if err := os.Remove(d.file(name)); err != nil {
		return fmt.Errorf("remove a client file: %w", err)
	}
	d.disown(name)
	return nil
}

func (d *directory) disown(name string) {
	d.owned = slices.DeleteFunc(d.owned, func(path string) bool { return path == d.file(name) })
}

// remove deletes the files that the simulator wrote here, and the directories that it made. A directory that it
// made is deleted with all its contents, because they are no older than the simulator. A parent directory
// that it made is deleted only if it is empty.
func (d *directory) remove() error {
	var errs []error
	for _, path := range d.owned {
		errs = append(errs, os.RemoveAll(path))
	}
	for i, path := range d.made {
		if i == 0 {
			errs = append(errs, os.RemoveAll(path))
		} else if os.Remove(path) != nil {
			break
		}
	}
	d.owned, d.made = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove what was made: %w", err)
	}
	return nil
}
