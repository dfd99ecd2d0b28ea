package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// RemoteBudget is the flag whose options are the limits of remote clusters.
const RemoteBudget = "remote-budget"

func budgetHelp() string {
	d := budget.Default()
	return fmt.Sprintf("limits of a remote cluster (docs/budgets.md): keys and bytes of a resource (ips.keys=%d, nodes.bytes=%dMi), bytes of a value (value=%dKi), "+
		"events per second (events=%d), duration of a list (list=%s); 0 is no limit; CLUSTER.ips.keys and so on for one cluster; "+
		"repeat the flag, or give one JSON map",
		d.Share(wire.IPs).Keys, d.Share(wire.Nodes).Bytes>>20, d.Value>>10, d.Events, shortSpan(d.List.Round(time.Second)))
}

// DisconnectPolicy is the flag whose options are the delays of the policy.
const DisconnectPolicy = "disconnect-policy"

func policyHelp() string {
	d := disconnect.DefaultDelays()
	return fmt.Sprintf("disconnect policy (docs/policy.md): time without confirmation until the service backends of a cluster are used only if no other cluster has one "+
		"(demote=%s); until they are removed if another cluster has one (withdraw=%s); time without a heartbeat until they are demoted (silence=%s); "+
		"time that a cluster must be confirmed until it is restored (restore=%s); 0 is never; CLUSTER.demote and so on for one cluster; repeat the flag, or give one JSON map",
		shortSpan(d.Demote), shortSpan(d.Withdraw), shortSpan(d.Silence), shortSpan(d.Restore))
}

// shortSpan formats whole minutes without seconds.
func shortSpan(d time.Duration) string {
	text := d.String()
	if d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// RemoteMemoryLimit returns the limit in bytes; 0 is none. The setting must be validated before.
func (c Config) RemoteMemoryLimit() int64 {
	if c.RemoteMemory != "" {
		n, _ := budget.ParseSize(c.RemoteMemory)
		return n
	}
	if !budget.IsLimited() {
		return 0
	}
	return budget.RemoteEntries.Bytes()
}

// ClaimsConfig are the claims that remote clusters may make (docs/claims.md).
type ClaimsConfig struct {
	PodCIDR         string `mapstructure:"pod-cidr" help:"pod networks of the own cluster, in addition to those of its nodes, separated by commas; an address of a remote cluster in them is refused"`
	ServiceCIDR     string `mapstructure:"service-cidr" help:"service networks of the own cluster, separated by commas; an address of a remote cluster in them is refused"`
	ClaimPolicy     string `mapstructure:"claim-policy" help:"policy for claims of remote clusters that break a rule (docs/claims.md), except claims in own networks, which are always refused: report (use them, like Cilium) or enforce (do not use them)"`
	ClaimPolicyFile string `mapstructure:"claim-policy-file" help:"file with the claims that each remote cluster may make (docs/claims.md); the agent watches it"`
	StateDir        string `mapstructure:"state-dir" help:"directory in which the agent keeps the cluster IDs of remote clusters across restarts; default: none"`
}

func (c ClaimsConfig) validate(note func(flag string, err error)) {
	_, err := networks(c.PodCIDR, "")
	note("pod-cidr", err)
	_, err = networks(c.ServiceCIDR, "")
	note("service-cidr", err)
	_, err = claims.ParseMode(c.ClaimPolicy)
	note("claim-policy", err)
	if c.ClaimPolicyFile != "" {
		_, err = claims.Load(c.ClaimPolicyFile)
		note("claim-policy-file", err)
	}
	if c.StateDir != "" {
		note("state-dir", checkStateDir(c.StateDir))
	}
}

// checkStateDir accepts only an existing directory: without one, no cluster IDs would be kept.
func checkStateDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is missing: make the directory, which must outlive restarts, for the cluster IDs to be remembered in", path)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: give one in which the cluster IDs can be remembered", path)
	}
	return nil
}

// Rules returns the rules of the address cache.
func (c ClaimsConfig) Rules() (ipcache.Rules, error) {
	pods, podsErr := networks(c.PodCIDR, "pod network")
	services, servicesErr := networks(c.ServiceCIDR, "service network")
	mode, modeErr := claims.ParseMode(c.ClaimPolicy)
	return ipcache.Rules{Own: append(pods, services...), Enforce: mode == claims.Enforce}, errors.Join(podsErr, servicesErr, modeErr)
}

// networks parses networks that are separated by commas.
func networks(list, what string) ([]ipcache.Own, error) {
	var all []ipcache.Own
	var errs []error
	for text := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		p, err := claims.ParseNetwork(strings.TrimSpace(text))
		if err == nil && claims.TooLarge(p) {
			err = fmt.Errorf("%s is larger than the network of a cluster can be: nothing of a remote would count; want /%d or longer, of IPv6 /%d", p, claims.Shortest4, claims.Shortest6)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, ipcache.Own{Prefix: p, What: what})
	}
	return all, errors.Join(errs...)
}
