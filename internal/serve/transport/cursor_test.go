package transport

import "testing"

func FuzzDecodeCursor(f *testing.F) {
	for _, seed := range []string{"", "!", EncodeCursor("ips", "10.0.0.1/32"), EncodeCursor("nodes", "c/n"), "MS9pcHMv\r000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if key, ok := DecodeCursor("ips", cursor); ok && EncodeCursor("ips", key) != cursor {
			t.Fatalf("%q and %q are the same cursor", cursor, EncodeCursor("ips", key))
		}
	})
}
