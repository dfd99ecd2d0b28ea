package describe

import "testing"

// TestAddressIn: the remedy of a conflict looks up the address in the message.
func TestAddressIn(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"1 claim of c4 is inside a pod network of another cluster, such as 10.3.0.4/32: inside 10.3.0.0/24": "10.3.0.4",
		"the network of c2, fd00:3::/64, is that of c3":                                                     "fd00:3::",
		"cluster ID 7 is used by c7 and c6":                                                                 "",
		"10.0.0.1;reboot/32 is claimed":                                                                     "",
		"":                                                                                                  "",
	} {
		if got := addressIn(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
