// Package notices has the licenses of everything that is linked into mesh-agent,
// whose authors want them to go with it. `make notices` writes them again after a
// change of the dependencies; a test of the package collect tells when it is due.
package notices

import _ "embed" // for the text

//go:embed notices.txt
var text string

// Text is a list of the modules, each with the numbers of its texts, and the texts.
func Text() string { return text }
