package httpapi

import (
	"net/http"
	"net/netip"
	"reflect"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/reasons"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// whyRoutes are the routes of explanations, also of objects that do not exist.
func (s *Server) whyRoutes() []route {
	why := func(path, what string, explain func(v *reasons.Facts, path func(string) string) (api.Explanation, error)) route {
		return route{
			path: "/v1/why/" + path, id: "why-" + what, summary: "The evidence for the state of one of the " + what + ", or for its absence.",
			answer: reflect.TypeFor[api.Explanation](), errors: []int{http.StatusBadRequest, http.StatusNotFound},
			handle: func(w http.ResponseWriter, r *http.Request) error {
				x, err := explain(s.factsOf(s.View.DatedSnapshot(r.Context())), r.PathValue)
				if err != nil {
					return err
				}
				writeJSON(w, x)
				return nil
			},
		}
	}
	return []route{
		why("clusters/{name}", "clusters", func(v *reasons.Facts, path func(string) string) (x api.Explanation, err error) {
			c, known := v.Clusters[path("name")]
			if !known {
				return x, notFound("there is no cluster %q", path("name"))
			}
			return reasons.Cluster(c), nil
		}),
		why("nodes/{cluster}/{name}", "nodes", func(v *reasons.Facts, path func(string) string) (api.Explanation, error) {
			return reasons.Node(v, path("cluster"), path("name")), nil
		}),
		why("services/{namespace}/{name}", "services", func(v *reasons.Facts, path func(string) string) (api.Explanation, error) {
			return reasons.Service(v, path("namespace"), path("name")), nil
		}),
		why("identities/{id}", "identities", func(v *reasons.Facts, path func(string) string) (x api.Explanation, err error) {
			id, err := parseIdentity(path("id"))
			if err != nil {
				return x, err
			}
			return reasons.Identity(v, *id), nil
		}),
		why("ips/{prefix...}", "ips", func(v *reasons.Facts, path func(string) string) (x api.Explanation, err error) {
			p, err := parsePrefix(path("prefix"))
			if err != nil {
				return x, err
			}
			return reasons.Address(v, p.Addr(), v.IPs.Lookup(p.Addr())), nil
		}),
	}
}

// factsOf returns the data that explanations need, from a dated snapshot.
func (s *Server) factsOf(v *view.Snapshot) *reasons.Facts {
	own := s.Agent.Cluster
	if s.Agent.ClusterID == 0 {
		own = ""
	}
	described := s.description()
	return &reasons.Facts{
		Tables: s.View.Tables.Tables, Txn: v.Txn, Clusters: v.Known, Own: own, Find: s.View.Reader.Find,
		Described: described != nil && described.Listed && described.Error == "", Unread: described != nil && !described.Listed,
	}
}

// toCandidates returns the claims of a lookup, and the claims that never count, each with the text of its step in the
// explanation.
func toCandidates(found ipcache.Found, why api.Explanation) []api.Candidate {
	claims := make(map[netip.Prefix]int)
	for _, e := range found.Claims {
		claims[e.Prefix()]++
	}
	for _, u := range found.Unreported {
		claims[u.Prefix] += u.Claims
	}
	candidates := make([]api.Candidate, 0, len(found.Claims))
	for i, e := range found.Claims {
		candidates = append(candidates, api.Candidate{Entry: toIP(e, claims[e.Prefix()]), Won: i == 0, Reason: why.Steps[i].Text})
	}
	for _, s := range found.Strays {
		if s.Barred {
			candidates = append(candidates, api.Candidate{Entry: toIP(s.Entry, claims[s.Entry.Prefix()]), Reason: why.Steps[len(candidates)].Text})
		}
	}
	return candidates
}
