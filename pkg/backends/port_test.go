package backends

import "testing"

// TestCheckPort: a port that no service can have is reported as invalid, and not as one that no backend has.
func TestCheckPort(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"": true, "http": true, "80": true, "65535": true, "80/UDP": true, "dns/tcp": true, "/SCTP": true, "8080-tcp": true,
		"0": false, "65536": false, "99999": false, "-1": false, "a/b/c": false, "80/": false, "80/ICMP": false, "Http": false, "a.b": false, " 80": false, "80\n": false,
	} {
		if err := CheckPort(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
