package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// The flags whose options are the delays of the disconnect policy, and the limits of remote clusters.
const (
	DisconnectPolicy = "disconnect-policy"
	RemoteBudget     = "remote-budget"
)

func (c *Config) parseRemotes(wrong *mistakes) {
	wrong.note(DirectoryFlag, checkMeshDirectory(c.ClustermeshConfig))
	if c.ClustermeshCacheTTL < 0 {
		wrong.note("clustermesh-cache-ttl", fmt.Errorf("%s is negative: give a duration such as 10m, or 0 to keep the backends", c.ClustermeshCacheTTL))
	}
	c.DisconnectPolicy = parsed(wrong, DisconnectPolicy, disconnect.ParsePolicy, c.Flags.DisconnectPolicy)
	c.RemoteBudget = parsed(wrong, RemoteBudget, budget.Parse, c.Flags.RemoteBudget)
	if text := c.Flags.RemoteMemory; text != "" {
		c.RemoteMemory = new(parsed(wrong, "remote-memory", budget.ParseSize, text))
	}
}

// RemoteMemoryLimit returns the limit in bytes; 0 is none. The default follows GOMEMLIMIT.
func (c Config) RemoteMemoryLimit() int64 {
	switch {
	case c.RemoteMemory != nil:
		return *c.RemoteMemory
	case budget.IsLimited():
		return budget.RemoteEntries.Bytes()
	}
	return 0
}

// checkMeshDirectory accepts a directory that can be watched, also one that does not exist yet: the agent waits for it,
// with a warning.
func checkMeshDirectory(path string) error {
	if path == "" {
		return errors.New("must name a directory")
	}
	err := checkDirectory(path, "the one that holds a client file for each remote cluster")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		if _, err = os.ReadDir(path); err != nil {
			return fmt.Errorf("cannot be read: %w", err)
		}
	}
	return err
}

func checkDirectory(path, instead string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory: give %s", path, instead)
	}
	return err
}

// ClaimsConfig are the claims that remote clusters may make (docs/claims.md).
type ClaimsConfig struct {
	PodCIDR         string `flag:"pod-cidr" help:"pod networks of the own cluster, in addition to those of its nodes, separated by commas; an address of a remote cluster in them is refused"`
	ServiceCIDR     string `flag:"service-cidr" help:"service networks of the own cluster, separated by commas; an address of a remote cluster in them is refused"`
	ClaimPolicy     string `flag:"claim-policy" help:"policy for claims of remote clusters that break a rule (docs/claims.md), except claims in own networks, which are always refused: report (use them, like Cilium) or enforce (do not use them)"`
	ClaimPolicyFile string `flag:"claim-policy-file" help:"file with the claims that each remote cluster may make (docs/claims.md); the agent watches it"`
	StateDir        string `flag:"state-dir" help:"directory in which the agent keeps the cluster IDs of remote clusters across restarts; default: none"`
}

func (c *Config) parseClaims(wrong *mistakes) {
	pods := parsed(wrong, "pod-cidr", networks("pod network"), c.Claims.PodCIDR)
	services := parsed(wrong, "service-cidr", networks("service network"), c.Claims.ServiceCIDR)
	mode := parsed(wrong, "claim-policy", claims.ParseMode, c.Claims.ClaimPolicy)
	c.ClaimRules = ipcache.Rules{Own: append(pods, services...), Enforce: mode == claims.Enforce}
	if file := c.Claims.ClaimPolicyFile; file != "" {
		c.ClaimPolicy = parsed(wrong, "claim-policy-file", claims.Load, file)
	}
	if dir := c.Claims.StateDir; dir != "" {
		wrong.note("state-dir", checkStateDir(dir))
	}
}

// checkStateDir accepts only an existing directory: without one, no cluster IDs would be kept.
func checkStateDir(path string) error {
	err := checkDirectory(path, "one in which the cluster IDs can be remembered")
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is missing: make the directory, which must outlive restarts, for the cluster IDs to be remembered in", path)
	}
	return err
}

// networks returns the function that parses networks, separated by commas, which are called what.
func networks(what string) func(string) ([]ipcache.Own, error) {
	return func(list string) (all []ipcache.Own, err error) {
		var errs []error
		for text := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(text) == "" {
				continue
			}
			p, err := claims.ParseNetwork(strings.TrimSpace(text))
			if err == nil && claims.TooLarge(p) {
				err = fmt.Errorf("%s is larger than the network of a cluster can be: nothing of a remote would count; want /%d or longer, of IPv6 /%d", p, claims.Shortest4, claims.Shortest6)
			}
			errs = append(errs, err)
			all = append(all, ipcache.Own{Prefix: p, What: what})
		}
		return all, errors.Join(errs...)
	}
}
