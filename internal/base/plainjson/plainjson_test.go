package plainjson

import (
	"encoding/json"
	"net"
	"net/netip"
	"testing"
)

// FuzzScanAddr compares the parser of addresses with the one that decides what
// encoding/json accepts.
func FuzzScanAddr(f *testing.F) {
	for _, s := range []string{
		"10.0.0.1", "0.0.0.0", "255.255.255.255", "256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1..2.3", "1.2.3.", "00.1.2.3",
		"::", "::1", "1::", "fd02::11", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8::",
		"1:2:3:4:5:6:7:8:9", "1::2::3", ":::", "1:", ":1", "12345::", "00001::", "g::", "FD02::A", "::ffff:10.0.0.1",
		"::ffff:a00:1", "fe80::1%eth0", "::/0", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := Addr(b)
		if !ok {
			return
		}
		if want, ok := netip.AddrFromSlice(net.ParseIP(string(b))); !ok || want.Unmap() != got {
			t.Fatalf("%q is read as %s, want %s", b, got, want)
		}
	})
}

// FuzzScanText compares the reader of plain strings with encoding/json.
func FuzzScanText(f *testing.F) {
	for _, s := range []string{`""`, `"12345678"`, `"1234567"`, `"123456789\""`, `"` + "\x1f" + `"`, `"é"`, `"1234567` + "\x00" + `"`, `"`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, padded bool) {
		input := b
		if padded { // so that all of it is read by the word
			input = append(append([]byte{}, b...), "        "...)
		}
		s := NewScanner(input)
		text, ok := s.Text()
		var want string
		valid := json.Unmarshal(input[:len(input)-len(s.Rest())], &want) == nil
		if ok && (!valid || string(text) != want) {
			t.Fatalf("%q is read as %q, encoding/json reads %q", input, text, want)
		}
		if plain := json.Unmarshal(b, &want) == nil && isPlain(b); plain && !ok {
			t.Fatalf("%q is not read", b)
		}
	})
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "7": 7, "255": 255, "256": -1, "01": -1, "x": -1, "": -1} {
		s := NewScanner([]byte(text + ","))
		if n, ok := s.Number(255); ok != (want >= 0) || ok && (int(n) != want || !s.Literal(",") || !s.Done() || s.Literal(",")) {
			t.Errorf("%q is read as %d, %t", text, n, ok)
		}
	}
}

// isPlain reports whether b is a string of nothing but plain characters.
func isPlain(b []byte) bool {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return false
	}
	for _, c := range b[1 : len(b)-1] {
		if c < ' ' || c >= 0x80 || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}
