package render_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFunctions: their results, and the arguments that they refuse.
func TestFunctions(t *testing.T) {
	t.Parallel()
	_, a := newMesh(t)
	for _, test := range []struct{ template, want, refused string }{
		{template: `{{ upstreamName "shop/cart" }}`, want: "shop-cart"},
		{template: `{{ upstreamName "shop-my/cart" }} {{ upstreamName "shop/my-cart" }}`, want: "shop--my-cart shop-my-cart"},
		{template: `{{ upstreamName "shop/cart" "http" }} {{ upstreamName "shop/cart" 80 }}`, want: "shop-cart.http shop-cart.80"},
		{template: `{{ upstreamName "cart" }}`, refused: `upstreamName "cart": want NAMESPACE/NAME`},
		{template: `{{ upstreamName "shop/a/b" }}`, refused: "want NAMESPACE/NAME"},
		{template: `{{ upstreamName "shop/Cart" }}`, refused: "want NAMESPACE/NAME"},
		{template: `{{ upstreamName "shop/cart" "a" "b" }}`, refused: "at most one port"},
		{template: `{{ upstreamName "shop/cart" "a.b" }}`, refused: "the name or the number of a port"},
		{template: `{{ hostsName "n1.eu" "east" }}`, want: "n1.eu.east"},
		{template: `{{ hostsName "n 1" "east" }}`, refused: `hostsName "n 1" "east"`},
		{template: `{{ hostsName (printf "%s.eu" (repeat 64 "a")) "east" }}`, refused: "the name of a node and of its cluster"},
		{template: `{{ hostsName "n1" "east.com" }}`, refused: "the name of a node and of its cluster"},
		{template: "{{ nginxQuote `a\"b\\c; } #'é` }}", want: `"a\"b\\c; } #'é"`},
		{template: `{{ nginxQuote "" }}`, want: `""`},
		{template: `{{ nginxQuote "a$b" }}`, refused: `nginxQuote "a$b": the text has a "$"`},
		{template: `{{ nginxQuote "a\nb" }}`, refused: "the character U+000A"},
		{template: `{{ nginxQuote (repeat 2047 "a") }}`, refused: "too long for nginx"},
		{template: "{{ haproxyQuote `a'b \"c\" \\ # $d` }}", want: `'a'\''b "c" \ # $d'`},
		{template: `{{ haproxyQuote "%[env(HOME)]" }}`, refused: `the text has a "%"`},
		{template: `{{ haproxyQuote "a\u2028b" }}`, refused: "the character U+2028"},
		{template: `{{ toJson "a\"b\\c: {é}\n" }}`, want: `"a\"b\\c: {é}\n"`},
		{template: "a\n\tb\n", want: "a\n\tb\n"},
		{template: "a\n\x1b[31m", refused: "line 2 of the result has the control character U+001B: remove it from the template, or allow it with --allow-control-characters"},
		{template: "a\r\n", refused: "U+000D"},
		{template: `{{ "\u202e" }}`, refused: "U+202E"},
		{template: `{{ "YQBi" | b64dec }}`, refused: "U+0000"},
		{template: "\xe9", refused: "0xE9, which is not UTF-8"},
	} {
		t.Run(test.template, func(t *testing.T) {
			args := []string{"--dry-run", "-t", a.file("t", test.template) + "=out"}
			out, _, err := a.run(t.Context(), args...)
			if test.refused == "" {
				if err != nil || strings.TrimPrefix(out, "# out\n") != test.want {
					t.Errorf("%v, %q", err, out)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.refused) || out != "" {
				t.Errorf("%v, %q", err, out)
			}
		})
	}
	if _, _, err := a.run(t.Context(), "--once", "--allow-control-characters", "-t", a.file("t", "a\r\n\x1b\xe9")+"="+filepath.Join(a.dir, "out")); err != nil || a.has("out") != "a\r\n\x1b\xe9" {
		t.Errorf("allowed: %v, %q", err, a.has("out"))
	}
}
