// Package notices has the licenses of everything that is linked into mesh-agent, whose authors require that they come
// with it. `make notices` writes them again after a change of the dependencies; a test of the package collect fails
// when that is due.
package notices

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the text
	"fmt"
	"io"
)

// The plain text is in the same directory, for the review of changes. In the program it would need four times the
// space.
//
//go:embed notices.txt.gz
var packed []byte

// Write writes a list of the modules, each with the numbers of its texts, and the texts.
func Write(to io.Writer) error {
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("the licenses in this program: %w", err)
	}
	if _, err := io.Copy(to, text); err != nil { //nolint:gosec // what the program was built with
		return fmt.Errorf("the licenses in this program: %w", err)
	}
	return nil
}
