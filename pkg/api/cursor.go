package api

import (
	"encoding/base64"
	"strings"
)

// cursorVersion is the first part of a decoded cursor.
const cursorVersion = "1"

// encodeCursor names the last item of a page. Nobody but decodeCursor looks
// into it.
func encodeCursor(resource, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + "/" + resource + "/" + key))
}

// decodeCursor returns the key of the last item that the client has seen. It
// fails when the cursor is not one of this resource.
func decodeCursor(resource, cursor string) (string, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", errCursor()
	}
	key, ok := strings.CutPrefix(string(raw), cursorVersion+"/"+resource+"/")
	if !ok || key == "" || encodeCursor(resource, key) != cursor { // base64 lets line ends pass
		return "", errCursor()
	}
	return key, nil
}

func errCursor() *Problem {
	return badRequest("cursor: not one that this list gave; start again without a cursor")
}
