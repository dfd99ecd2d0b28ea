package safetext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// hostile is what terminals, browsers or readers of YAML make something of.
func hostile() []rune {
	var all []rune
	for r := rune(0); r <= 0x9f; r++ {
		if r < ' ' || r >= 0x7f {
			all = append(all, r)
		}
	}
	return append(all, 0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0xfeff, 0xfffe, 0xffff)
}

// checkSafe wants no such character but the ends of lines.
func checkSafe(t interface{ Errorf(string, ...any) }, text []byte) {
	if !utf8.Valid(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	for _, r := range string(text) {
		if r != '\n' && strings.ContainsRune(string(hostile()), r) {
			t.Errorf("%U in %.200q", r, text)
		}
	}
}

func forms() map[string]struct {
	write func(any) ([]byte, error)
	read  func([]byte, any) error
} {
	type form = struct {
		write func(any) ([]byte, error)
		read  func([]byte, any) error
	}
	return map[string]form{
		"JSON":          {func(v any) ([]byte, error) { return JSON(v, "") }, json.Unmarshal},
		"indented JSON": {func(v any) ([]byte, error) { return JSON(v, "  ") }, json.Unmarshal},
		"YAML":          {YAML, func(text []byte, v any) error { return yaml.Unmarshal(text, v) }},
		"an encoder": {func(v any) ([]byte, error) {
			var b bytes.Buffer
			err := json.NewEncoder(writer{&b}).Encode(v)
			return b.Bytes(), err
		}, json.Unmarshal},
	}
}

func TestEachCharacterComesBack(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, r := range hostile() {
		texts = append(texts, string(r), "a"+string(r)+"b", "aaaaaaaa"+string(r), string([]rune{r, r})+"é→🙂\"\\: #")
	}
	for name, f := range forms() {
		text, err := f.write(texts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkSafe(t, text)
		var got []string
		if err := f.read(text, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(texts, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnyTextComesBack(t *testing.T) {
	t.Parallel()
	runes := rapid.OneOf(rapid.SampledFrom(hostile()), rapid.SampledFrom([]rune("aé→🙂\"\\ :-#'%x0\n\t{}[]<>&escaped0x1")), rapid.RuneFrom(nil, unicode.L, unicode.Cf))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringOfN(runes, 0, 20, -1), rapid.SampledFrom([]string{"escaped0x0x", "escaped0x", `\u202e`, `\\u202e`, "yes", "1"}))
		want := rapid.MapOf(text, rapid.SliceOf(text)).Draw(t, "texts")
		for name, f := range forms() {
			out, err := f.write(want)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkSafe(t, out)
			got := make(map[string][]string)
			if err := f.read(out, &got); err != nil {
				t.Fatalf("%s: %v: %q", name, err, out)
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %q", name, out)
			}
			for k, v := range want {
				if diff := cmp.Diff(strings.Join(v, "|"), strings.Join(got[k], "|")); diff != "" {
					t.Fatalf("%s: %s: %q", name, diff, out)
				}
			}
		}
	})
}

// TestHarmlessTextIsAsEver: text without anything to escape is the same as the libraries write it.
func TestHarmlessTextIsAsEver(t *testing.T) {
	t.Parallel()
	v := map[string]any{"name": "wéb→🙂", "n": 18446744073709551615.0, "list": []string{"a: b", "yes", ""}, "lines": "a\nb\n", "<&>": nil}
	want, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := YAML(v); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s %v", got, err)
	}
	if got, err := JSON("<a>", ""); err != nil || string(got) != `"<a>"` {
		t.Errorf("%s %v", got, err)
	}
	for _, v := range []any{make(chan int), func() {}} {
		if _, err := YAML(v); err == nil {
			t.Errorf("%T: no error", v)
		}
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	if got := FileName("node-1.example/x\x1b ü"); got != "node-1.example_x___" {
		t.Error(got)
	}
}

func BenchmarkWriter(b *testing.B) {
	text := []byte(`{"prefix":"10.0.0.1/32","cluster":"c1","clusterID":1,"identity":65537,"hostIP":"192.168.0.1","encryptionKey":0,"namespace":"default","pod":"web-1","source":"clustermesh","kind":"endpoint","claims":1}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		escape(text)
	}
}
