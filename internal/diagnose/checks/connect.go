package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Connect asks the servers behind all files, like troubleshoot and with its options, and adds their problems, also
// those among several servers.
func (r *Report) Connect(ctx context.Context, o troubleshoot.Options) {
	var targets []troubleshoot.Target
	var of []int // the file of each target
	for i, f := range r.Files {
		if f.Verdict != WouldIgnore {
			targets = append(targets, troubleshoot.Target{Cluster: f.Cluster, Path: f.File})
			of = append(of, i)
		}
	}
	reports := troubleshoot.All(ctx, targets, o)
	for i, report := range reports {
		r.Files[of[i]].merge(&report)
	}
	r.Connected = true
	r.sameIDs()
	r.sameEtcds(reports)
	r.count()
}

// merge adds the findings of the server behind a file. Problems of the file itself are known already.
func (f *File) merge(report *troubleshoot.Report) {
	f.ClusterID, f.EtcdClusterID = report.ClusterID, report.EtcdClusterID
	known := slices.Clone(f.Findings)
	well := false
	for _, s := range report.Steps {
		switch s.Name {
		case troubleshoot.StepFile, troubleshoot.StepAuthorities, troubleshoot.StepCertificate:
			continue
		case troubleshoot.StepConfiguration:
			well = s.State == troubleshoot.OK
		}
		for _, found := range s.Findings {
			if slices.ContainsFunc(known, func(k codes.Finding) bool { return k.Code == found.Code }) {
				continue
			}
			found.Message = placed(s, found.Message)
			f.Findings = append(f.Findings, found)
		}
	}
	if !well {
		f.Verdict = WouldFail
	}
}

func placed(s troubleshoot.Step, message string) string {
	if s.Endpoint == "" {
		return s.Name + ": " + message
	}
	return s.Name + " of " + s.Endpoint + ": " + message
}

// sameIDs finds cluster IDs that several clusters say. That one is the own one's
// is found with the cluster itself.
func (r *Report) sameIDs() {
	of := make(map[uint32][]string)
	for _, f := range r.Files {
		if f.ClusterID != 0 {
			of[f.ClusterID] = append(of[f.ClusterID], f.Cluster)
		}
	}
	for i := range r.Files {
		f := &r.Files[i]
		if names := of[f.ClusterID]; len(names) > 1 {
			f.add(codes.ClusterIDConflict, fmt.Sprintf("cluster ID %d is that of %s: the agent would read the first that connects", f.ClusterID, strings.Join(names, " and ")), "")
		}
	}
}

// sameEtcds finds etcds that are those of several clusters which are no copies
// there. reports are those of the files that would be connected, in their order.
func (r *Report) sameEtcds(reports []troubleshoot.Report) {
	type etcd struct{ id, mark string }
	of := make(map[etcd][]string)
	at := make(map[string]etcd) // by cluster
	for _, report := range reports {
		if e := (etcd{report.EtcdClusterID, report.EtcdMark}); e.id != "" && e.mark != "" && !report.Cached {
			of[e] = append(of[e], report.Name)
			at[report.Name] = e
		}
	}
	for i := range r.Files {
		f := &r.Files[i]
		if names := of[at[f.Cluster]]; len(names) > 1 {
			f.add(codes.EtcdShared, fmt.Sprintf("the etcd with the cluster ID %s is that of %s", f.EtcdClusterID, strings.Join(names, " and ")), "")
		}
	}
}
