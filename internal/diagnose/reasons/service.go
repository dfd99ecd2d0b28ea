package reasons

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Service explains why a service is global or not, and which backends are used. It
// need not be there.
func Service(v *Facts, namespace, name string) api.Explanation {
	g, _, _ := v.Services.Global().Get(v.Txn, services.GlobalByName(namespace, name))
	s := serviceChain{view: v, namespace: namespace, name: name, global: g, have: []api.Step{}, by: make(map[codes.Code][]string)}
	s.exports = disagreeing(v, namespace, name)
	others := slices.Collect(maps.Keys(s.exports))
	if v.Own != "" {
		others = append(others, v.Own)
	}
	if g != nil {
		for _, p := range g.Parts {
			others = append(others, p.Cluster)
		}
	}
	for _, cluster := range v.names(others...) {
		s.add(cluster)
	}
	return api.Explanation{Verdict: s.verdict(), Steps: append(s.have, s.lack...)}
}

type serviceChain struct {
	view            *Facts
	namespace, name string
	global          *services.Global
	exports         map[string]*services.Export // by cluster; empty when they agree
	have, lack      []api.Step                  // of the clusters that have it, and of the others
	by              map[codes.Code][]string     // clusters by the code of their step
}

func (s *serviceChain) add(cluster string) {
	part := s.part(cluster)
	at, now := s.view.asOf(cluster, wire.Services, wire.EndpointSlices)
	step := api.Step{Cluster: cluster, AsOf: at, Keys: s.keys(cluster)}
	refused := refusal(step.Keys)
	switch {
	case part == nil && refused != "":
		step.Code, step.Text = codes.PartRefused, "its entry is refused: "+refused
	case part == nil && now && s.view.refusedOf(cluster, wire.Services, wire.EndpointSlices) != "":
		step.Code, step.Text = codes.PartsRefused, "may have it: "+s.view.refusedOf(cluster, wire.Services, wire.EndpointSlices)
	case part == nil && now:
		step.Code, step.Text = codes.PartNotExported, "does not export it"
	case part == nil:
		step.Code, step.Text = codes.PartUnknown, "may have it: its services: "+s.view.unconfirmed(cluster, at)
	default:
		step.Code, step.Text = s.partCode(part), cmp.Or(s.global, new(services.Global)).Reason(part)
		if refused != "" {
			step.Text += "; its current entry is refused, and this is the previous one: " + refused
		}
		if _, read := s.view.Clusters[cluster]; read && !now {
			step.Text += "; its services: " + s.view.unconfirmed(cluster, at)
		}
	}
	if x := s.exports[cluster]; x != nil {
		s.addExport(&step, x)
	}
	s.by[step.Code] = append(s.by[step.Code], cluster)
	if part == nil {
		s.lack = append(s.lack, step)
	} else {
		s.have = append(s.have, step)
	}
}

func (s *serviceChain) addExport(to *api.Step, x *services.Export) {
	to.Text += fmt.Sprintf("; through the MCS API it exports it since %s, with session affinity %s", x.Created.Format(time.RFC3339), x.SessionAffinity())
	if at, now := s.view.asOf(x.Cluster, wire.ServiceExports); !now {
		to.Text += ", " + s.view.unconfirmed(x.Cluster, at)
	}
	to.Keys = append(to.Keys, s.view.keys(x.Cluster, wire.ServiceExports, x.FullName())...)
}

// disagreeing returns the exports of a service, by cluster, when their affinities differ: else no step mentions them.
func disagreeing(v *Facts, namespace, name string) map[string]*services.Export {
	exports := statedb.Collect(v.Services.ServiceExports().List(v.Txn, services.ExportsByName(namespace, name)))
	if !services.AffinitiesDiffer(exports) {
		return nil
	}
	by := make(map[string]*services.Export, len(exports))
	for _, x := range exports {
		by[x.Cluster] = x
	}
	return by
}

// part returns a cluster's part in the service, also if the service is not global because no clusters share it.
func (s *serviceChain) part(cluster string) *services.Service {
	if s.global != nil {
		return s.global.Part(cluster)
	}
	entry, _, _ := s.view.Services.Exported().Get(s.view.Txn, services.ByKey(cluster, s.namespace, s.name))
	return entry
}

func (s *serviceChain) partCode(part *services.Service) codes.Code {
	switch {
	case !part.Offers():
		return codes.PartNotShared
	case !s.global.InUse(part):
		return codes.PartWithheld
	case part.Barred() > 0:
		return codes.PartBarred
	case len(part.Backends) == 0:
		return codes.PartEmpty
	}
	switch selected := s.global.Selection().Selects(part); {
	case part.Use != services.Full && selected:
		return codes.PartKept
	case part.Use != services.Full:
		return codes.PartDemoted
	case !selected:
		return codes.PartStandsBy
	}
	return codes.PartUsed
}

// doubted are the clusters whose backends are not used as those of others.
func (s *serviceChain) doubted() []string {
	return slices.Concat(s.by[codes.PartWithheld], s.by[codes.PartDemoted], s.by[codes.PartKept])
}

func (s *serviceChain) keys(cluster string) []api.Key {
	keys := s.view.keys(cluster, wire.Services, s.namespace+"/"+s.name)
	for one := range s.view.Services.Slices().List(s.view.Txn, services.SlicesByService(cluster, s.namespace, s.name)) {
		keys = append(keys, s.view.keys(cluster, wire.EndpointSlices, one.Namespace+"/"+one.Name)...)
	}
	return keys
}

func (s *serviceChain) verdict() api.Verdict {
	if s.global == nil {
		return s.absent()
	}
	own := s.global.Local()
	sharing := s.clusters(func(p *services.Service) bool { return !p.Local() && p.Shared })
	_, ownIsRead := s.view.asOf(s.view.Own, wire.Services, wire.EndpointSlices)
	switch {
	case own == nil && s.view.Own != "" && ownIsRead:
		return verdictf(codes.NoOwnService, "not used here: %s %s it, and the own cluster %s has no service of this name",
			ordered(sharing), plural(len(sharing), "shares", "share"), s.view.Own)
	case own != nil && !own.UsesRemotes():
		return verdictf(codes.OwnNotGlobal, "not global: the service of the own cluster %s is not annotated as global", own.Cluster)
	case own != nil && len(sharing) == 0:
		return s.alone(own)
	case s.global.NumBackends() == 0 && len(s.by[codes.PartBarred]) > 0 && len(s.doubted()) == 0:
		return verdictf(codes.NoBackends, "global, and without backends that may be used: those of %s are on addresses that no remote can have", ordered(s.by[codes.PartBarred]))
	case s.global.NumBackends() == 0 && len(s.doubted()) == 0:
		return verdictf(codes.NoBackends, "global, and without backends: no cluster that shares it has any")
	}
	return s.used(own, sharing)
}

// used is the verdict on a service that joins clusters.
func (s *serviceChain) used(own *services.Service, sharing []string) api.Verdict {
	selection := s.global.Selection()
	switch {
	case own != nil && !selection.Remote:
		return verdictf(codes.AffinityLocal, "global, and only the own backends are used: %s", selection.Why)
	case own != nil && !selection.Local:
		return verdictf(codes.AffinityRemote, "global, and only the backends of others are used: %s", selection.Why)
	case len(s.doubted()) > 0:
		return verdictf(codes.BackendsWithheldBy, "global: shared by %s; the backends of %s are not used as usual", ordered(sharing), ordered(s.doubted()))
	}
	return verdictf(codes.ServiceGlobal, "global: shared by %s; %s", ordered(s.clusters((*services.Service).Offers)),
		printer.Counted(s.global.NumBackends(), "backend is in use", "backends are in use"))
}

// alone is the verdict on a global service of the own cluster that no other cluster shares.
func (s *serviceChain) alone(own *services.Service) api.Verdict {
	none := verdictf(codes.NotExported, "not global: there is no cluster other than %s", own.Cluster)
	if missing := s.by[codes.PartNotExported]; len(missing) > 0 {
		none.Text = fmt.Sprintf("not global: cluster %s %s not export it", ordered(missing), plural(len(missing), "does", "do"))
	}
	return s.unshared("not global as far as is known: ", none)
}

// absent is the verdict on a service that no cluster is known to export.
func (s *serviceChain) absent() api.Verdict {
	return s.unshared(fmt.Sprintf("no cluster is known to share %s/%s, and ", s.namespace, s.name),
		verdictf(codes.ServiceNowhere, "no cluster exports %s/%s", s.namespace, s.name))
}

// unshared is why no other cluster shares the service: none, unless a reason is known or some clusters may share it
// without this agent knowing it.
func (s *serviceChain) unshared(unknown string, none api.Verdict) api.Verdict {
	refused, private := s.by[codes.PartRefused], s.by[codes.PartNotShared]
	others := unknownTexts("services", s.by[codes.PartUnknown], s.by[codes.PartsRefused])
	switch {
	case len(refused) > 0:
		return verdictf(codes.RefusedEverywhere, "not global: the entry of %s is refused", ordered(refused))
	case others != "":
		return api.Verdict{Code: codes.ServiceUnknown, Text: unknown + others}
	case len(private) > 0:
		return verdictf(codes.NotShared, "not global: %s publishes it with shared=false", ordered(private))
	}
	return none
}

func (s *serviceChain) clusters(are func(*services.Service) bool) []string {
	var names []string
	for _, p := range s.global.Parts {
		if are(p) {
			names = append(names, p.Cluster)
		}
	}
	return names
}
