package transport

import (
	"encoding/base64"
	"strings"
)

const cursorVersion = "1" // the first part of a decoded cursor

// EncodeCursor returns the cursor of a page with this last item. Only [DecodeCursor] reads it.
func EncodeCursor(resource, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + "/" + resource + "/" + key))
}

// DecodeCursor returns the key of the last item that the client has received; false when the cursor does not belong
// to this resource.
func DecodeCursor(resource, cursor string) (string, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", false
	}
	key, ok := strings.CutPrefix(string(raw), cursorVersion+"/"+resource+"/")
	// base64 accepts line ends
	return key, ok && key != "" && EncodeCursor(resource, key) == cursor
}
