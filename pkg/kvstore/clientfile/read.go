package clientfile

import (
	"fmt"
	"os"
)

// maxFile bounds the files that a configuration is made of, in bytes.
const maxFile = 1 << 20

// readFile reads a client file, a certificate or a key: a regular file of a
// sensible size. Whatever else a path leads to, a pipe or a device, must not
// hold up whoever looks.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, which is no client file, certificate or key", path, info.Size())
	}
	return os.ReadFile(path)
}
