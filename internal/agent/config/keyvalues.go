package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// keyValues is a flag that may be repeated: key=value, several of them with
// commas between, or one JSON map. It reads back as a JSON map.
type keyValues map[string]string

// Set adds what the argument holds.
func (k *keyValues) Set(arg string) error {
	if *k == nil {
		*k = make(keyValues)
	}
	if strings.HasPrefix(strings.TrimSpace(arg), "{") {
		var m map[string]string
		if err := json.Unmarshal([]byte(arg), &m); err != nil {
			return fmt.Errorf("not a JSON map of texts: %w", err)
		}
		maps.Copy(*k, m)
		return nil
	}
	pairs := strings.Split(arg, ",")
	for i, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("option %d of %d is not key=value", i+1, len(pairs)) // it may be a secret
		}
		(*k)[key] = value
	}
	return nil
}

// String returns a JSON map, empty for none.
func (k *keyValues) String() string {
	if k == nil || len(*k) == 0 {
		return ""
	}
	text, err := json.Marshal(*k)
	if err != nil {
		panic(err) // a map of strings
	}
	return string(text)
}

// Type names the flag's form in the help.
func (k *keyValues) Type() string { return "key=value" }
