package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"reflect"
)

// ConfigKey is the answer of /v1/config-key.
type ConfigKey struct {
	Key string `json:"key" doc:"The key of configHash, hexadecimal; another one in each process."`
}

// NewConfigKey returns a key for [KeyedHash].
func NewConfigKey() string {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return hex.EncodeToString(key)
}

// KeyedHash is a cluster's configHash: the HMAC of kvstore.Fingerprint, which is
// hexadecimal, as a client file has a password in it, and whoever sees a plain hash
// can try passwords. That of nothing is nothing.
func KeyedHash(key, contentHash string) string {
	if contentHash == "" {
		return ""
	}
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(contentHash)) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

// configKeyRoute gives the key to those who may read the client files anyway.
func (s *Server) configKeyRoute() route {
	return route{
		local: true, path: "/v1/config-key", id: "config-key", summary: "The key of configHash, for those who compare client files with it.",
		answer: reflect.TypeFor[ConfigKey](), handle: func(w http.ResponseWriter, _ *http.Request) error {
			writeJSON(w, ConfigKey{s.configKey})
			return nil
		},
	}
}
