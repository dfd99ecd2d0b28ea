package checks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// Directory examines every entry of a mesh directory at a moment, with the same
// eyes as a running agent, and connects to nothing. own is the name of the own
// cluster. It fails when the directory cannot be read.
func Directory(dir, own string, now time.Time) (*Report, error) {
	entries, err := clustermesh.Entries(dir, own)
	if err != nil {
		return nil, err
	}
	r := &Report{Directory: dir, OwnCluster: own, Files: []File{}, Findings: []codes.Finding{}}
	key := api.NewConfigKey()
	same := make(map[string]string) // the first file with these contents
	for _, e := range entries {
		f := examined(e, own, now)
		f.ContentHash = api.KeyedHash(key, f.contents)
		if other := same[f.contents]; f.contents != "" && other != "" {
			f.add(codes.SameContents, "it has the same contents as "+other, "")
		}
		same[f.contents] = cmp.Or(same[f.contents], e.Name)
		r.Files = append(r.Files, f)
	}
	r.misspelt(own)
	r.count()
	return r, nil
}

// examined is an entry with what is wrong with it.
func examined(e clustermesh.Entry, own string, now time.Time) File {
	f := File{File: e.Path, Verdict: WouldIgnore, Findings: []codes.Finding{}}
	if e.Reason != nil {
		f.Reason = e.Reason.Error()
	}
	switch e.Verdict {
	case clustermesh.EntryOther:
	case clustermesh.EntryOwn:
		f.add(codes.OwnClusterFile, f.Reason, "")
	case clustermesh.EntryMisnamed:
		f.add(codes.ClientFileMisnamed, f.Reason, "")
	case clustermesh.EntryUnreadable:
		f.Cluster, f.Verdict, f.Reason = e.Name, WouldFail, ""
		f.add(cmp.Or(hint.Code(e.Reason), codes.ClientFileUnreadable), e.Reason.Error(), hint.Text(e.Reason))
	case clustermesh.EntryClient:
		f.Cluster, f.Verdict = e.Name, WouldConnect
		f.contents = fmt.Sprintf("%x", clientfile.FingerprintContent(e.Content))
		f.client(e.Path, own, now)
		if fails(f.Findings, false) {
			f.Verdict = WouldFail
		}
	}
	return f
}

// misspelt looks for names that are those of a cluster but for upper case: to
// rename these files is no remedy.
func (r *Report) misspelt(own string) {
	clusters := []string{own}
	for _, f := range r.Files {
		if f.Cluster != "" {
			clusters = append(clusters, f.Cluster)
		}
	}
	for i := range r.Files {
		f := &r.Files[i]
		name := filepath.Base(f.File)
		if lower := strings.ToLower(name); lower != name && f.has(codes.ClientFileMisnamed) && slices.Contains(clusters, lower) {
			f.Findings = []codes.Finding{codes.NamesDifferInCase.Found(fmt.Sprintf("there is a cluster %s too: %s", lower, f.Reason), "")}
		}
	}
}
