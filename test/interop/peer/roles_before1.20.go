//go:build before1.20

package main

// roles are what a peer of an older release can be, by name.
func roles() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"codec": runCodec,
		"watch": runWatch,
	}
}
