package clientfile

import (
	"net/netip"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// HostAliasesKey is the option of a client file that gives host names addresses.
const HostAliasesKey = "cilium-host-aliases"

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
		code := codes.ClientFileOption
		if yaml.Unmarshal(content, new(map[string]any)) != nil {
			code = codes.ClientFileNoYAML
		}
		return nil, problemf(code, "failed to parse config file: %w", err)
	}
	seen := make(map[string]bool)
	for _, a := range file.Aliases {
		switch {
		case a.Hostname == "":
			return nil, problemf(codes.ClientFileOption, "failed to parse config file: %s entry has an empty hostname", HostAliasesKey)
		case len(a.IPs) == 0:
			return nil, problemf(codes.ClientFileOption, "failed to parse config file: %s entry for hostname %q has no IPs", HostAliasesKey, a.Hostname)
		case seen[a.Hostname]:
			return nil, problemf(codes.ClientFileOption, "failed to parse config file: %s has duplicate hostname %q", HostAliasesKey, a.Hostname)
		}
		seen[a.Hostname] = true
	}
	return file.Aliases, nil
}
