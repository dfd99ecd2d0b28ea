package wire

import (
	"encoding/json"
	"fmt"
)

// mustJSON encodes what always can be. A value that cannot be encoded (an
// net.IP that is neither 0, 4 nor 16 bytes long) is its maker's mistake.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("wire: a value that cannot be written was given to Encode: %v", err))
	}
	return b
}
