package wire

import (
	"errors"
	"testing"
)

// TestDetailsAreLeftOut: an invalid host name or zone is left out, and the entry is kept. A text with unprintable
// characters or invalid UTF-8 makes the entry invalid.
func TestDetailsAreLeftOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"host-1": true, "": true, "Upper_Case": false, "a.b": false, "-": false} {
		s := &Service{Namespace: "shop", Name: "cart", Hostnames: map[string]string{"10.1.0.1": "other", "10.1.0.2": text}}
		slice := &EndpointSlice{Namespace: "shop", Name: "cart-1", AddressType: "IPv4", Endpoints: []Endpoint{{Hostname: new(text), Zone: new("a zone")}}}
		if err := errors.Join(s.CheckNames(), slice.CheckNames()); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, there := s.Hostnames["10.1.0.2"]; there != want || s.Hostnames["10.1.0.1"] != "other" {
			t.Errorf("%q: the host names are %v", text, s.Hostnames)
		}
		if e := slice.Endpoints[0]; (*e.Hostname == text) != want || *e.Zone != "" {
			t.Errorf("%q: the endpoint has the host name %q and the zone %q", text, *e.Hostname, *e.Zone)
		}
	}
	for _, text := range []string{"a\nb", "\x1b[31m", "\xff", "\u202e"} {
		s := &Service{Namespace: "shop", Name: "cart", Hostnames: map[string]string{"10.1.0.1": text}}
		slice := &EndpointSlice{Namespace: "shop", Name: "cart-1", AddressType: "IPv4", Endpoints: []Endpoint{{Hostname: new(text)}}}
		if s.CheckNames() == nil || slice.CheckNames() == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
