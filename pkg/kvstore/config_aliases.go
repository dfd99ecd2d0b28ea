package kvstore

import (
	"fmt"
	"net/netip"

	"sigs.k8s.io/yaml"
)

const hostAliasesKey = "cilium-host-aliases"

// HostAlias gives a host name addresses, for one client file alone.
type HostAlias struct {
	Hostname string       `json:"hostname"`
	IPs      []netip.Addr `json:"ips"`
}

// parseHostAliases reads Cilium's extension of a client file and ignores
// everything else in it.
func parseHostAliases(content []byte) ([]HostAlias, error) {
	var file struct {
		Aliases []HostAlias `json:"cilium-host-aliases"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("failed to parse config file: %w", err)
	}
	seen := make(map[string]bool)
	for _, a := range file.Aliases {
		switch {
		case a.Hostname == "":
			return nil, fmt.Errorf("failed to parse config file: %s entry has an empty hostname", hostAliasesKey)
		case len(a.IPs) == 0:
			return nil, fmt.Errorf("failed to parse config file: %s entry for hostname %q has no IPs", hostAliasesKey, a.Hostname)
		case seen[a.Hostname]:
			return nil, fmt.Errorf("failed to parse config file: %s has duplicate hostname %q", hostAliasesKey, a.Hostname)
		}
		seen[a.Hostname] = true
	}
	return file.Aliases, nil
}
