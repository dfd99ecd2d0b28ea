package config

import (
	"maps"
	"testing"
	"unicode/utf8"
)

// FuzzKeyValues: a flag's text reads back as the same values.
func FuzzKeyValues(f *testing.F) {
	for _, text := range []string{"etcd.qps=100", "a=1,b=2", "a=http://x:1", `{"a":"1"}`, " {}", "a", "=", ",", "\xe2=\x8a\xbe"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var k, again keyValues
		if k.Set(text) != nil || len(k) == 0 || !validText(k) {
			return
		}
		if err := again.Set(k.String()); err != nil || !maps.Equal(k, again) {
			t.Fatalf("%q reads as %v, and that as %v (%v)", text, k, again, err)
		}
	})
}

// validText reports whether a map can be written as JSON without a loss.
func validText(k keyValues) bool {
	for key, value := range k {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return false
		}
	}
	return true
}

// FuzzSettings: a settings file is accepted, or refused with the line at fault.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"cluster-name: east\ncluster-id: 1\n", "kvstore-opt: {etcd.qps: 100}", "clustermesh-sync-timeout: 30s", "debug-pprof: true",
		"cluster-id: 1e3", "listen: [", "- a", "a: 1", "kvstore-opt: a=b", "cluster-id: -1", "log-level: null",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		values, err := parseSettings(content)
		if err != nil {
			return
		}
		s := NewSettings()
		s.file = "settings.yaml"
		for key, value := range values {
			if err := s.setFromFile(key, value); err != nil {
				if err.Error() == "" {
					t.Fatal("a mistake without words")
				}
				continue
			}
			if s.from[key] != "settings.yaml: "+key {
				t.Fatalf("%s comes from %q", key, s.from[key])
			}
		}
		s.typed() // of anything
	})
}
