package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Policy checks a claim policy file against the directory. If the servers were asked ([Report.Connect]), it also
// reports their present entries that the file would refuse. The options are those of Connect, the budgets those of
// the agent.
func (r *Report) Policy(ctx context.Context, file string, o troubleshoot.Options, budgets budget.Budgets) {
	defer r.count()
	policy, err := claims.Load(file)
	if err != nil {
		mistakes := []error{err}
		if several, is := err.(interface{ Unwrap() []error }); is {
			mistakes = several.Unwrap()
		}
		for _, mistake := range mistakes {
			r.add(codes.PolicyFileUnusable, printer.Clean(mistake.Error()))
		}
		return
	}
	for _, name := range policy.Clusters() {
		if !r.has(name) {
			r.add(codes.PolicyClusterUnknown, fmt.Sprintf("%s has an entry in %s and no client file in %s", name, file, r.Directory))
		}
	}
	var all errgroup.Group
	defer func() { _ = all.Wait() }() // no function returns an error
	all.SetLimit(audits)
	for i := range r.Files {
		f := &r.Files[i]
		if f.Verdict == WouldIgnore || !f.admitted(policy) || !r.Connected {
			continue
		}
		all.Go(func() error {
			f.audit(ctx, policy, o, budgets.Of(f.Cluster))
			return nil
		})
	}
}

// Budgets finds budgets of clusters that are not there.
func (r *Report) Budgets(b budget.Budgets) {
	defer r.count()
	for _, name := range slices.SortedFunc(maps.Keys(b.Clusters), natural.Compare) {
		if !r.has(name) {
			r.add(codes.PolicyClusterUnknown, fmt.Sprintf("--remote-budget names %s, which has no client file in %s", name, r.Directory))
		}
	}
}

func (r *Report) has(cluster string) bool {
	return slices.ContainsFunc(r.Files, func(f File) bool { return f.Cluster == cluster })
}

const audits = 4 // clusters that are listed at once

// admitted reports whether the agent would read the cluster, and finds why not.
func (f *File) admitted(policy *claims.Policy) bool {
	refused := policy.Admit(f.Cluster, f.ClusterID)
	if refused == nil {
		return true
	}
	code := codes.PolicyPinMismatch
	if refused.Unlisted {
		code = codes.PolicyNotAdmitted
	}
	f.add(code, refused.Error()+": nothing would be read of "+f.Cluster, "")
	return false
}

func (f *File) audit(ctx context.Context, policy *claims.Policy, o troubleshoot.Options, b budget.Budget) {
	incomplete := func(err error) {
		f.add(codes.PolicyNotCompared, "cannot predict which claims the policy file refuses: "+printer.Clean(err.Error()), "")
	}
	if f.ClusterID == 0 {
		incomplete(errors.New("its configuration could not be read"))
		return
	}
	client, err := connect(ctx, f.File, o)
	if err != nil {
		incomplete(err)
		return
	}
	defer client.Close()
	expect, caps, err := expected(ctx, client, f.Cluster, o.Own)
	if err != nil {
		incomplete(err)
		return
	}
	for _, a := range clustermesh.Audit(ctx, client, policy, expect, caps, b) {
		if a.Err != nil {
			incomplete(fmt.Errorf("%s: %w", a.Resource, a.Err))
		}
		if a.Refused > 0 {
			f.add(codes.PolicyWouldRefuse, printer.Clean(fmt.Sprintf("the claim policy file would refuse %d of the %d %s of %s, such as %s: %s",
				a.Refused, a.Keys, a.Resource, f.Cluster, a.Key, a.Why)), "")
		}
	}
}

// connect opens a session with the first endpoint that answers.
func connect(ctx context.Context, file string, o troubleshoot.Options) (*etcd.Session, error) {
	cfg, err := clientfile.Load(file)
	if err != nil {
		return nil, err
	}
	options := etcd.DefaultOptions()
	options.Dial = o.Dial
	var errs []error
	for attempt := range cfg.Endpoints {
		client, err := etcd.Connect(ctx, cfg, attempt, options)
		if err == nil {
			return client, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

const configurationWithin = 15 * time.Second // for the configuration of a cluster

// expected is what the agent knows of a cluster when it reads it.
func expected(ctx context.Context, client *etcd.Session, cluster string, own wire.ClusterInfo) (wire.Expect, wire.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, configurationWithin)
	defer cancel()
	kv, _, err := client.Get(ctx, wire.ClusterConfigKey(cluster))
	if err == nil && kv == nil {
		err = fmt.Errorf("there is no %s", wire.ClusterConfigKey(cluster))
	}
	if err != nil {
		return wire.Expect{}, wire.Capabilities{}, err
	}
	cfg, err := wire.DecodeClusterConfig(kv.Value)
	if err != nil {
		return wire.Expect{}, wire.Capabilities{}, err
	}
	layout, err := wire.NewLayout(cmp.Or(own.MaxConnectedClusters, wire.MaxConnectedClusters255))
	return wire.Expect{Cluster: cluster, ClusterID: cfg.ID, LocalID: own.ID, Layout: layout}, cfg.Capabilities, err
}
