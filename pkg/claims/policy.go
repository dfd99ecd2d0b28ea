package claims

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Policy is what a policy file says.
type Policy struct {
	deny   bool // a cluster without an entry is refused
	grants map[string]*Grant
}

// Grant is what one cluster may claim. Nil grants everything, and so does a field
// that the file leaves out.
type Grant struct {
	id         uint32 // 0: any
	networks   *[]netip.Prefix
	namespaces *[]string
	services   *[]string
	identities *[]span
	text       string // the whole, to compare
}

// span is a range of identities, both ends included.
type span struct{ first, last uint32 }

// File is the form of a policy file.
type File struct {
	// Default is what becomes of clusters without an entry: allow or deny.
	Default string `json:"default,omitempty"`
	// Clusters has the entries by the clusters' names.
	Clusters map[string]FileGrant `json:"clusters"`
}

// FileGrant is the entry of a cluster. What is left out is not restricted; an empty
// list grants nothing.
type FileGrant struct {
	ID         uint32    `json:"id,omitempty"`         // its cluster ID
	Networks   *[]string `json:"networks,omitempty"`   // of its nodes, pods and backends
	Namespaces *[]string `json:"namespaces,omitempty"` // names, with * and ? as in file names
	Services   *[]string `json:"services,omitempty"`   // NAMESPACE/NAME, with * and ?
	Identities *[]string `json:"identities,omitempty"` // numbers and ranges such as 131072-135000
}

// maxFile bounds a policy file.
const maxFile = 4 << 20

// Load reads a policy file. The error names every mistake.
func Load(file string) (*Policy, error) {
	content, err := read(file)
	if err != nil {
		return nil, err
	}
	p, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// read reads a file of a sensible size. It does not wait for a pipe or a device, and
// a file that grows meanwhile is not read further.
func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxFile:
		return nil, fmt.Errorf("%s has more than %d bytes, which no policy file has", file, maxFile)
	}
	return content, nil
}

// Parse reads the contents of a policy file. The error names every mistake.
func Parse(content []byte) (*Policy, error) {
	var f File
	if err := yaml.UnmarshalStrict(content, &f); err != nil {
		return nil, err
	}
	p := &Policy{deny: f.Default == "deny", grants: make(map[string]*Grant)}
	var errs []error
	if f.Default != "" && f.Default != "allow" && f.Default != "deny" {
		errs = append(errs, fmt.Errorf("default: %q: want allow or deny", f.Default))
	}
	ids := make(map[uint32]string)
	for _, name := range slices.Sorted(maps.Keys(f.Clusters)) {
		entry := f.Clusters[name]
		note := func(field string, err error) {
			if err != nil {
				errs = append(errs, fmt.Errorf("clusters.%s%s: %w", name, field, err))
			}
		}
		note("", wire.ValidateClusterName(name))
		if other, taken := ids[entry.ID]; taken && entry.ID != 0 {
			note(".id", fmt.Errorf("%d is also that of %s", entry.ID, other))
		}
		ids[entry.ID] = name
		p.grants[name] = entry.grant(note)
	}
	return p, errors.Join(errs...)
}

func (f FileGrant) grant(note func(field string, err error)) *Grant {
	text, err := yaml.Marshal(f)
	note("", err)
	return &Grant{
		id:         f.ID,
		networks:   each(f.Networks, parseNetwork, ".networks", note),
		namespaces: each(f.Namespaces, parsePattern, ".namespaces", note),
		services:   each(f.Services, parseService, ".services", note),
		identities: each(f.Identities, parseSpan, ".identities", note),
		text:       string(text),
	}
}

// each reads every text of a list; nil stays nil.
func each[T any](texts *[]string, parse func(string) (T, error), field string, note func(field string, err error)) *[]T {
	if texts == nil {
		return nil
	}
	all := make([]T, 0, len(*texts))
	for _, text := range *texts {
		one, err := parse(text)
		note(field, err)
		all = append(all, one)
	}
	return &all
}

func parseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() {
		return p, fmt.Errorf("%q is no network: want one such as 10.0.0.0/16, without host bits", text)
	}
	return p, nil
}

func parsePattern(text string) (string, error) {
	if _, err := path.Match(text, ""); err != nil || text == "" || strings.Contains(text, "/") {
		return "", fmt.Errorf("%q is no name: want one such as shop, or with * and ? as in team-*", text)
	}
	return text, nil
}

func parseService(text string) (string, error) {
	if _, err := path.Match(text, ""); err != nil || strings.Count(text, "/") != 1 {
		return "", fmt.Errorf("%q names no service: want NAMESPACE/NAME, each with * and ? as in shop/*", text)
	}
	return text, nil
}

func parseSpan(text string) (span, error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	b, errB := strconv.ParseUint(strings.TrimSpace(last), 10, 32)
	if errA != nil || errB != nil || a > b {
		return span{}, fmt.Errorf("%q is no range of identities: want one such as 131072-135000, or a number", text)
	}
	return span{uint32(a), uint32(b)}, nil
}

// Of returns what a cluster may claim, nil for everything, and whether it is
// admitted at all. A nil policy admits all.
func (p *Policy) Of(cluster string) (*Grant, bool) {
	if p == nil {
		return nil, true
	}
	g := p.grants[cluster]
	return g, g != nil || !p.deny
}

// Pin returns the cluster ID that the file gives to a cluster; 0 for none.
func (p *Policy) Pin(cluster string) uint32 {
	if g, _ := p.Of(cluster); g != nil {
		return g.id
	}
	return 0
}

// Pinned returns the cluster that the file gives an ID to; empty for none.
func (p *Policy) Pinned(id uint32) string {
	if p != nil && id != 0 {
		for name, g := range p.grants {
			if g.id == id {
				return name
			}
		}
	}
	return ""
}

// Equal tells whether both say the same of a cluster.
func (p *Policy) Equal(o *Policy, cluster string) bool {
	a, admittedA := p.Of(cluster)
	b, admittedB := o.Of(cluster)
	if admittedA != admittedB || (a == nil) != (b == nil) {
		return false
	}
	return a == nil || a.text == b.text
}

// Address tells whether the cluster may claim a prefix; the error says why not.
func (g *Grant) Address(p netip.Prefix) error {
	if g == nil || g.networks == nil || slices.ContainsFunc(*g.networks, func(n netip.Prefix) bool { return n.Bits() <= p.Bits() && n.Contains(p.Addr().Unmap()) }) {
		return nil
	}
	return fmt.Errorf("%s is in none of the networks that the policy file grants", p)
}

// Host is Address for a single address. An invalid or unspecified one is none.
func (g *Grant) Host(a netip.Addr) error {
	if a = a.Unmap(); !a.IsValid() || a.IsUnspecified() {
		return nil
	}
	return g.Address(netip.PrefixFrom(a.WithZone(""), a.BitLen()))
}

// Namespace tells whether the cluster may have anything in a namespace; the empty
// one is none.
func (g *Grant) Namespace(name string) error {
	if g == nil || g.namespaces == nil || name == "" || matches(*g.namespaces, name) {
		return nil
	}
	return fmt.Errorf("the namespace %s is none of those that the policy file grants", name)
}

// Service tells whether the cluster may export a service.
func (g *Grant) Service(namespace, name string) error {
	if err := g.Namespace(namespace); err != nil {
		return err
	}
	if g == nil || g.services == nil || matches(*g.services, namespace+"/"+name) {
		return nil
	}
	return fmt.Errorf("the service %s/%s is none of those that the policy file grants", namespace, name)
}

// Identity tells whether the cluster may use a number. Reserved ones are judged by
// [Privileged].
func (g *Grant) Identity(id uint32) error {
	if g == nil || g.identities == nil || id < wire.IdentityReservedEnd || slices.ContainsFunc(*g.identities, func(s span) bool { return s.first <= id && id <= s.last }) {
		return nil
	}
	return fmt.Errorf("the identity %d is in none of the ranges that the policy file grants", id)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// Clusters are those with an entry, sorted.
func (p *Policy) Clusters() []string { return slices.Sorted(maps.Keys(p.grants)) }
