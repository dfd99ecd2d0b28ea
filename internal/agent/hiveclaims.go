package agent

import (
	"context"
	"log/slog"
	"strings"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// newIPs makes the cache of addresses with its rules.
func newIPs(c config.Config) (*ipcache.Cache, error) {
	rules, err := c.Claims.Rules()
	if err != nil {
		return nil, err
	}
	return ipcache.New(rules), nil
}

// tellUnknownNetworks logs which networks nobody guards, because this agent does not
// know them: where it reads its own nodes these announce the pod networks.
func tellUnknownNetworks(c config.Config, log *slog.Logger) error {
	opts, err := c.KVStoreOptions()
	if err != nil {
		return err
	}
	var missing []string
	if c.Claims.PodCIDR == "" && !opts.HasLocal() && !c.Local.Given() {
		missing = append(missing, "--pod-cidr")
	}
	if c.Claims.ServiceCIDR == "" {
		missing = append(missing, "--service-cidr")
	}
	if len(missing) > 0 {
		log.Info("Not all networks of the own cluster are known: remote clusters can have addresses in the others (docs/claims.md)", "missing", strings.Join(missing, ", "))
	}
	return nil
}

// followClaims puts the policy file in force, and then follows it.
func followClaims(c config.Config, current *claims.Current, h cell.Health, jobs job.Group, log *slog.Logger) error {
	file := c.Claims.ClaimPolicyFile
	if file == "" {
		return nil
	}
	first, err := claims.Load(file) // before anything is read of a cluster
	if err != nil {
		return exit.Usagef("--claim-policy-file: %w", err)
	}
	current.Set(first)
	scope := h.NewScope("claim-policy")
	report := func(err error) {
		if err != nil {
			scope.Degraded("what the claim policy file said before stays in force", err)
			return
		}
		scope.OK("following " + file)
	}
	runs(jobs, "claim-policy", func(ctx context.Context) error { return current.Follow(ctx, file, report, log) })
	return nil
}
