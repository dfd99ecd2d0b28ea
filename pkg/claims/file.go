package claims

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// maxFile is the maximum size of a policy file.
const maxFile = 4 << 20

// Load reads a policy file. The error has every mistake separately, as from [errors.Join].
func Load(file string) (*Policy, error) {
	content, err := read(file)
	if err != nil {
		return nil, err
	}
	p, mistakes := parse(content)
	for i, err := range mistakes {
		mistakes[i] = fmt.Errorf("%s: %w", file, err)
	}
	return p, errors.Join(mistakes...)
}

// read reads a file up to a maximum size. It does not wait for a pipe or a device, and does not read more of a file
// that grows meanwhile.
func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing: there is no such file", file)
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
		return nil, fmt.Errorf("%s has more than %d bytes, the limit of a policy file", file, maxFile)
	}
	return content, nil
}

// Parse parses the contents of a policy file. The error has every mistake separately, as from [errors.Join], with its
// line.
func Parse(content []byte) (*Policy, error) {
	p, mistakes := parse(content)
	return p, errors.Join(mistakes...)
}

// reader reads a policy file, of this form:
//
//	default: allow            # of clusters without an entry: allow or deny
//	clusters:                 # by name; {} does not restrict the cluster
//	  paris:
//	    id: 3                 # its cluster ID
//	    networks: [10.3.0.0/16]  # of its nodes, pods and backends
//	    namespaces: [team-*]  # names, with * and ? as in file names
//	    services: [shop/*]    # NAMESPACE/NAME, with * and ?
//	    identities: [196608-196700, 196999]
//
// A field that an entry leaves out restricts nothing; an empty list grants nothing.
type reader struct {
	policy   *Policy
	pins     map[uint32]string
	mistakes []error
}

func parse(content []byte) (*Policy, []error) {
	r := &reader{policy: &Policy{grants: make(map[string]*Grant)}, pins: make(map[uint32]string)}
	root, err := document(content)
	if err != nil {
		return nil, []error{err}
	}
	said := false
	r.fields(root, "", "default and clusters", func(key string, at, value *yaml.Node) {
		said = true
		switch key {
		case "default":
			n := resolved(value)
			if n.Kind != yaml.ScalarNode || n.Value != "allow" && n.Value != "deny" {
				r.note(n, "default", "%s: want allow or deny", shown(n))
			}
			r.policy.deny = n.Value == "deny"
		case "clusters":
			r.fields(value, "clusters", "a name with an entry for each cluster", r.cluster)
		default:
			r.note(at, key, "there is no such field: want default and clusters")
		}
	})
	if !said && len(r.mistakes) == 0 {
		// An interrupted editor can leave an empty file. It must not lift all restrictions.
		return nil, []error{errors.New("it is empty: want default (allow or deny), or clusters with an entry for each; 'default: allow' restricts no cluster")}
	}
	return r.policy, r.mistakes
}

// document returns the root of the only document.
func document(content []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: null}, nil
	case err != nil:
		return nil, fmt.Errorf("it is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the first YAML document: want one")
	}
	return doc.Content[0], nil
}

const null = "!!null"

// note records a mistake.
func (r *reader) note(at *yaml.Node, field, format string, args ...any) {
	r.mistakes = append(r.mistakes, fmt.Errorf("line %d: %s: %s", at.Line, field, fmt.Sprintf(format, args...)))
}

// fields calls take for each field of a mapping. The file itself may be null: it then has no fields.
func (r *reader) fields(n *yaml.Node, field, want string, take func(key string, at, value *yaml.Node)) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		if field == "" && n.Tag == null {
			return
		}
		if field == "" {
			field = "the file"
		}
		r.note(n, field, "it is %s: want %s", kind(n), want)
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolved(n.Content[i]), n.Content[i+1]
		if seen[key.Value] {
			r.note(key, strings.TrimPrefix(field+"."+key.Value, "."), "it is there twice")
			continue
		}
		seen[key.Value] = true
		take(key.Value, key, value)
	}
}

// cluster reads an entry.
func (r *reader) cluster(name string, at, value *yaml.Node) {
	field := "clusters." + name
	if err := wire.ValidateClusterName(name); err != nil {
		r.note(at, field, "%v", err)
	}
	g := new(Grant)
	r.fields(value, field, "id, networks, namespaces, services or identities, or {} for no restriction", func(key string, at, value *yaml.Node) {
		within := field + "." + key
		switch key {
		case "id":
			g.id = r.pin(within, name, value)
		case "networks":
			g.networks = list(r, within, value, ParseNetwork)
		case "namespaces":
			g.namespaces = list(r, within, value, parsePattern)
		case "services":
			g.services = list(r, within, value, parseService)
		case "identities":
			g.identities = list(r, within, value, parseSpan)
		default:
			r.note(at, within, "there is no such field: want id, networks, namespaces, services or identities")
		}
	})
	g.text = fmt.Sprint(g.id, described(g.networks), described(g.namespaces), described(g.services), described(g.identities))
	r.policy.grants[name] = g
}

// described formats a list; a missing one differs from an empty one.
func described[T any](all *[]T) string {
	if all == nil {
		return "all"
	}
	return fmt.Sprintf("%q", fmt.Sprint(*all))
}

// pin reads a cluster ID: no mesh has the ID 0, and 511 is the largest ID of any layout (wire.md §1.2).
func (r *reader) pin(field, name string, n *yaml.Node) uint32 {
	n = resolved(n)
	id, err := strconv.ParseUint(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || id == 0 || id > uint64(wire.MaxConnectedClusters511) {
		r.note(n, field, "%s is no cluster ID: want a number from 1 to %d, or to %d in a mesh with --max-connected-clusters=%d",
			shown(n), wire.MaxConnectedClusters255, wire.MaxConnectedClusters511, wire.MaxConnectedClusters511)
		return 0
	}
	if other, taken := r.pins[uint32(id)]; taken {
		r.note(n, field, "%d is also that of %s", id, other)
	}
	r.pins[uint32(id)] = name
	return uint32(id)
}

// list reads every text of a list.
func list[T any](r *reader, field string, n *yaml.Node, parse func(string) (T, error)) *[]T {
	n = resolved(n)
	all := make([]T, 0, len(n.Content))
	if n.Kind != yaml.SequenceNode {
		r.note(n, field, "%s is no list: want one such as [a, b]; [] grants nothing", shown(n))
		return &all
	}
	for _, item := range n.Content {
		item = resolved(item)
		if item.Kind != yaml.ScalarNode || item.Tag == null {
			r.note(item, field, "it has %s: want texts", kind(item))
			continue
		}
		one, err := parse(item.Value)
		if err != nil {
			r.note(item, field, "%v", err)
			continue
		}
		all = append(all, one)
	}
	return &all
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kind returns the kind of a node, for use in a sentence.
func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == null:
		return "empty"
	}
	return "a text"
}

// shown formats a value for a message: the text of a scalar, or the kind of any other node.
func shown(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Tag != null {
		return strconv.Quote(n.Value)
	}
	return kind(n)
}
