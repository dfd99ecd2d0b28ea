package render

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// checks filters the agent's data for templates. It does not rely on the agent, which may be an older release: remote
// clusters control nearly all of the data, and a template writes it into files of other programs.
//
//   - A name must be valid by the rules of Kubernetes. An object with an invalid name is left out. An invalid backend,
//     address, port or label is left out of its object; an invalid hostname, zone or node name becomes empty.
//   - Other texts may be any text; their control characters are escaped.
type checks struct {
	say  func(format string, args ...any)
	said map[string]bool // the rules that were broken; at most one for each call of refuse
}

// refuse reports the first value that breaks a rule, and returns false.
func (c *checks) refuse(rule, value string) bool {
	if !c.said[rule] {
		c.said[rule] = true
		c.say("left out %s: the first one is %q; others are not reported", rule, value[:min(len(value), mostShown)])
	}
	return false
}

const mostShown = 200 // bytes of a value, in a message

func isLabel(name string) bool   { return len(validation.IsDNS1123Label(name)) == 0 }
func isValue(text string) bool   { return len(validation.IsValidLabelValue(text)) == 0 }
func isKey(name string) bool     { return len(validation.IsQualifiedName(name)) == 0 }
func isCluster(name string) bool { return wire.ValidateClusterName(name) == nil }
func isPrefix(text string) bool  { _, err := netip.ParsePrefix(text); return err == nil }

// isHost reports whether a text is the name of a host. Kubernetes allows longer parts between dots than DNS (RFC 1035).
func isHost(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if len(part) > validation.DNS1123LabelMaxLength {
			return false
		}
	}
	return len(validation.IsDNS1123Subdomain(name)) == 0
}

// isAddress refuses an address with a zone, which can be any text, and the unspecified address: for HAProxy 0.0.0.0
// means the address that the client connected to.
func isAddress(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Zone() == "" && !ip.IsUnspecified()
}

// service reports whether templates get a service, and removes invalid parts of it.
func (c *checks) service(s *api.Service) bool {
	if !isLabel(s.Namespace) || !isLabel(s.Name) {
		return c.refuse("services whose namespace or name is not valid", s.Namespace+"/"+s.Name)
	}
	s.Clusters = kept(s.Clusters, func(p *api.ServiceCluster) bool { return c.cluster(p.Cluster) })
	s.Backends = kept(s.Backends, func(b *api.Backend) bool {
		return c.backend(b.IP, b.Cluster, &b.Ports, &b.Hostname, &b.Zone, &b.Node)
	})
	escapeTexts(reflect.ValueOf(s))
	return true
}

// chosen reports whether templates get a backend. It must have a port unless port is empty.
func (c *checks) chosen(b *api.ChosenBackend, port string) bool {
	ok := c.backend(b.IP, b.Cluster, &b.Ports, &b.Hostname, &b.Zone, &b.Node) && (port == "" || len(b.Ports) > 0)
	escapeTexts(reflect.ValueOf(b))
	return ok
}

func (c *checks) backend(ip, cluster string, ports *[]api.Port, hostname, zone, node *string) bool {
	if !isAddress(ip) {
		return c.refuse("backends whose address is not valid", ip)
	}
	*ports = kept(*ports, c.port)
	c.emptied(hostname, isHost, "hostnames that are not valid")
	c.emptied(zone, isValue, "zones that are not valid")
	c.emptied(node, isHost, "names of nodes that are not valid")
	return c.cluster(cluster)
}

// emptied sets a text to "" when it is not a valid name.
func (c *checks) emptied(text *string, isName func(string) bool, rule string) {
	if *text != "" && !isName(*text) {
		c.refuse(rule, *text)
		*text = ""
	}
}

func (c *checks) port(p *api.Port) bool {
	if p.Port == 0 || p.Name != "" && !isLabel(p.Name) || !slices.Contains([]string{"TCP", "UDP", "SCTP"}, p.Protocol) {
		return c.refuse("ports whose name, number or protocol is not valid", fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
	}
	return true
}

func (c *checks) cluster(name string) bool {
	return isCluster(name) || c.refuse("clusters whose name is not valid", name)
}

// node reports whether templates get a node, and removes invalid parts of it.
func (c *checks) node(n *api.Node) bool {
	if !isHost(n.Name) {
		return c.refuse("nodes whose name is not valid", n.Name)
	}
	n.Addresses = kept(n.Addresses, func(a *api.NodeAddress) bool {
		return isAddress(a.IP) && isValue(a.Type) || c.refuse("addresses of nodes that are not valid", a.Type+" "+a.IP)
	})
	for _, all := range []*[]string{&n.HealthIPs, &n.IngressIPs} {
		*all = kept(*all, func(ip *string) bool { return isAddress(*ip) || c.refuse("addresses of nodes that are not valid", *ip) })
	}
	n.PodCIDRs = kept(n.PodCIDRs, func(p *string) bool { return isPrefix(*p) || c.refuse("pod networks that are not valid", *p) })
	for key, value := range n.Labels {
		if !isKey(key) || !isValue(value) {
			c.refuse("labels that are not valid", key+"="+value)
			delete(n.Labels, key)
		}
	}
	for key := range n.Annotations {
		if !isKey(key) {
			c.refuse("annotations whose key is not valid", key)
			delete(n.Annotations, key)
		}
	}
	escapeTexts(reflect.ValueOf(n))
	return c.cluster(n.Cluster)
}

// state reports whether templates get a cluster.
func (c *checks) state(of *api.Cluster) bool {
	escapeTexts(reflect.ValueOf(of))
	return c.cluster(of.Name)
}

// kept returns the items for which stays returns true; stays may change an item.
func kept[T any](items []T, stays func(*T) bool) []T {
	to := items[:0]
	for i := range items {
		if stays(&items[i]) {
			to = append(to, items[i])
		}
	}
	return to
}

// escapeTexts escapes the control characters of all strings in a value, so that each stays on one line.
func escapeTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			escapeTexts(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				escapeTexts(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			escapeTexts(v.Index(i))
		}
	case reflect.Map:
		escapeMap(v)
	case reflect.String:
		if strings.IndexFunc(v.String(), safetext.IsControl) >= 0 {
			v.SetString(printer.Clean(v.String()))
		}
	}
}

func escapeMap(v reflect.Value) {
	if v.IsNil() {
		return
	}
	to := reflect.MakeMapWithSize(v.Type(), v.Len())
	for i := v.MapRange(); i.Next(); {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.Set(i.Key())
		value.Set(i.Value())
		escapeTexts(key)
		escapeTexts(value)
		to.SetMapIndex(key, value)
	}
	v.Set(to)
}
