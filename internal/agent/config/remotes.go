package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// RemoteBudget is the flag whose options are what remote clusters may cost.
const RemoteBudget = "remote-budget"

func budgetHelp() string {
	d := budget.Default()
	return fmt.Sprintf("what a remote cluster may cost: keys and bytes of a resource (ips.keys=%d, nodes.bytes=%dMi), bytes of a value (value=%dKi), "+
		"events a second (events=%d), how long a list may take (list=%s); 0 is no bound; CLUSTER.ips.keys and so on for one cluster; "+
		"repeated, or one JSON map (docs/budgets.md)",
		d.Share(wire.IPs).Keys, d.Share(wire.Nodes).Bytes>>20, d.Value>>10, d.Events, shortSpan(d.List.Round(time.Second)))
}

// DisconnectPolicy is the flag whose options are the delays of the policy.
const DisconnectPolicy = "disconnect-policy"

func policyHelp() string {
	d := disconnect.DefaultDelays()
	return fmt.Sprintf("after how long without confirmation a cluster's service backends are used only where no other cluster has any (demote=%s) "+
		"and not at all there (withdraw=%s); after how long without a heartbeat the first of these (silence=%s); how long all must be well "+
		"again before that ends (restore=%s); 0 is never; CLUSTER.demote and so on for one cluster; repeated, or one JSON map (docs/policy.md)",
		shortSpan(d.Demote), shortSpan(d.Withdraw), shortSpan(d.Silence), shortSpan(d.Restore))
}

// shortSpan writes whole minutes as a person does.
func shortSpan(d time.Duration) string {
	text := d.String()
	if d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// remoteMemoryShare is how much of the memory that Go may use entries of remote clusters may take.
// The rest is for reading them, for answers, and for what the collector leaves for a while.
const remoteMemoryShare = 0.7

// RemoteMemoryLimit is the bound in bytes; 0 is none. The setting is validated.
func (c Config) RemoteMemoryLimit() int64 {
	if c.RemoteMemory != "" {
		n, _ := budget.ParseSize(c.RemoteMemory)
		return n
	}
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 0
	}
	return int64(float64(limit) * remoteMemoryShare)
}

// ClaimsConfig says what remote clusters may claim (docs/claims.md).
type ClaimsConfig struct {
	PodCIDR         string `mapstructure:"pod-cidr" help:"pod networks of the own cluster, beside those that its nodes announce: no remote can have an address in them; separated by commas"`
	ServiceCIDR     string `mapstructure:"service-cidr" help:"service networks of the own cluster: no remote can have an address in them; separated by commas"`
	ClaimPolicy     string `mapstructure:"claim-policy" help:"what becomes of other claims of remotes that break a rule (docs/claims.md): report them, and let them count as with Cilium, or enforce the rules"`
	ClaimPolicyFile string `mapstructure:"claim-policy-file" help:"a file that says what each remote cluster may claim, watched (docs/claims.md)"`
	StateDir        string `mapstructure:"state-dir" help:"a directory in which the cluster IDs of the remotes are remembered over restarts; none when it is not given"`
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

// checkStateDir wants a directory that is there: without it nothing would be
// remembered, which is what it was given for.
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

// Rules are those of the address cache.
func (c ClaimsConfig) Rules() (ipcache.Rules, error) {
	pods, podsErr := networks(c.PodCIDR, "pod network")
	services, servicesErr := networks(c.ServiceCIDR, "service network")
	mode, modeErr := claims.ParseMode(c.ClaimPolicy)
	return ipcache.Rules{Own: append(pods, services...), Enforce: mode == claims.Enforce}, errors.Join(podsErr, servicesErr, modeErr)
}

// networks reads networks that are separated by commas.
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
