// Package notices has the licenses of everything that is linked into mesh-agent,
// whose authors want them to go with it. `make notices` writes them again after a
// change of the dependencies; a test of the package collect tells when it is due.
package notices

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the text
	"fmt"
	"io"
)

// The text itself is beside it, for those who read changes. In the program it would take four times the room.
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
