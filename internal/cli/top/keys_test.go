package top

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"":                  "rate | east/nodes west/services",
		"s":                 "entries | west/services east/nodes",
		"sssss":             "rate | east/nodes west/services",
		"SSSS":              "cluster | east/nodes west/services",
		"fwest\r":           "rate west | west/services",
		"/serv":             "rate serv_ | west/services",
		"/weas\x7f\x7f\x7f": "rate w_ | west/services",
		"/\b\x7feast\n/":    "rate _ | east/nodes west/services",
		"/east\x1b":         "rate | east/nodes west/services",
		"/east\r\x1b":       "rate | east/nodes west/services",
		"/q\r":              "rate q | no",
		"/ \x01\xff\r":      "rate | east/nodes west/services",
		"x[A":               "rate | east/nodes west/services",
		"/w\rsq":            "quit",
	} {
		l := look{options: options{order: printer.NewFormat(orders()...)}, sample: &sample{Rows: []row{
			{Cluster: "east", Resource: "nodes", Entries: 1}, {Cluster: "west", Resource: "services", Entries: 2},
		}}}
		got := ""
		for _, key := range []byte(keys) {
			if l.press(key) {
				got = "quit"
			}
		}
		if got == "" {
			s := l.arranged()
			got = l.order.String() + " " + l.filter
			if l.typing {
				got += "_"
			}
			got = strings.TrimSpace(got) + " |"
			for _, r := range s.Rows {
				got += " " + r.Cluster + "/" + r.Resource
			}
			if s.filtered {
				got += " no"
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", keys, got, want)
		}
	}
	l := look{options: options{order: printer.NewFormat(orders()...)}, sample: new(sample)}
	for _, key := range []byte("/" + strings.Repeat("x", 1000)) {
		l.press(key)
	}
	if len(l.filter) != mostTyped {
		t.Errorf("a filter of %d", len(l.filter))
	}
}
