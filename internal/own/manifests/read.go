package manifests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// document is one object of a file.
type document struct {
	number int    // in the file, from 1; those of a List have that of the list
	kind   string // one of those that are read
	name   string // among those of the kind
	value  []byte // JSON
	object metav1.Object
}

// contents are what a file says.
type contents struct {
	documents []document
	unknown   []string  // kinds that are not read, each once
	bad       []problem // without the name of the file
}

// reader reads the documents of one file.
type reader struct {
	kinds []kind
	contents
}

// read reads the objects of these kinds in a file of YAML documents, or JSON ones. A byte order mark says that it is
// UTF-16, as editors of Windows write it, or UTF-8. It is a pure function.
func read(kinds []kind, content []byte, isJSON bool) contents {
	r := reader{kinds: kinds}
	content, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content)
	if err != nil {
		r.fail(1, fmt.Errorf("%w: its encoding is not what its byte order mark says; write it in UTF-8: %w", errSplit, err))
		return r.contents
	}
	next := yamlDocuments(content)
	if isJSON {
		next = jsonDocuments(content)
	}
	for number := 1; ; number++ {
		value, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return r.contents
		case errors.Is(err, errSplit):
			r.fail(number, err)
			return r.contents
		case err != nil:
			r.fail(number, err)
		default:
			r.document(number, value)
		}
	}
}

// errSplit: where the next document begins is not known.
var errSplit = errors.New("the rest of the file cannot be read")

// yamlDocuments returns a function that gives the documents as JSON, and io.EOF after the last one.
func yamlDocuments(content []byte) func() ([]byte, error) {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	return func() ([]byte, error) {
		text, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errSplit, err)
		}
		if version := yamlVersion(text); version != nil {
			text = bytes.Replace(text, version, nil, 1)
		}
		value, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("it is not valid YAML; correct it: %w", err)
		}
		return value, nil
	}
}

// yamlVersion is the directive at the start of a document that names its version, which the library refuses if it is 1.2.
func yamlVersion(text []byte) []byte {
	for line := range bytes.Lines(text) {
		switch line = bytes.TrimRight(line, "\r\n"); {
		case bytes.HasPrefix(line, []byte("%YAML 1.")):
			return line
		case len(line) > 0 && line[0] != '#':
			return nil
		}
	}
	return nil
}

func jsonDocuments(content []byte) func() ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	return func() ([]byte, error) {
		var value json.RawMessage
		err := d.Decode(&value)
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: it is not valid JSON; correct it: %w", errSplit, err)
		}
		return value, err
	}
}

func (r *reader) fail(number int, err error) {
	r.bad = append(r.bad, problem{document: number, reason: err.Error()})
}

// head is what all objects have.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Items are those of a List.
	Items []json.RawMessage `json:"items"`
}

// document takes an object or a List of objects. A document of nothing but comments is none.
func (r *reader) document(number int, value []byte) {
	if bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return
	}
	h, err := readHead(value)
	if err != nil {
		r.fail(number, err)
		return
	}
	element, isList := strings.CutSuffix(h.Kind, "List")
	if !isList {
		r.object(number, h, value)
		return
	}
	for i, item := range h.Items {
		of, err := readHead(item)
		if err != nil && element != "" && of.Kind == "" && of.APIVersion == "" {
			of, err = head{APIVersion: h.APIVersion, Kind: element}, nil // as the API gives typed lists
		}
		switch {
		case err != nil:
			r.fail(number, fmt.Errorf("item %d of the %s: %w", i+1, h.Kind, err))
		case strings.HasSuffix(of.Kind, "List"):
			r.fail(number, fmt.Errorf("item %d of the %s is a list itself; lists cannot be nested", i+1, h.Kind))
		default:
			r.object(number, of, item)
		}
	}
}

func readHead(value []byte) (head, error) {
	var h head
	if err := json.Unmarshal(value, &h); err != nil {
		return h, fmt.Errorf("it is no Kubernetes object: %w", err)
	}
	if h.Kind == "" || h.APIVersion == "" {
		return h, errors.New("it is no Kubernetes object: it needs an apiVersion and a kind")
	}
	return h, nil
}

// object takes one object.
func (r *reader) object(number int, h head, value []byte) {
	group, version, grouped := strings.Cut(h.APIVersion, "/")
	if !grouped {
		group, version = "", group
	}
	i := slices.IndexFunc(r.kinds, func(k kind) bool { return k.name == h.Kind && k.group == group })
	if i < 0 {
		if name := h.Kind + " (" + h.APIVersion + ")"; !slices.Contains(r.unknown, name) {
			r.unknown = append(r.unknown, name)
		}
		return
	}
	k := r.kinds[i]
	if !slices.Contains(k.versions, version) {
		r.fail(number, fmt.Errorf("version %q of %s is not understood; write it as apiVersion: %s", version, k.name, k.apiVersion()))
		return
	}
	o, err := k.decode(value)
	if err == nil {
		err = place(o, k.namespaced)
	}
	if err == nil {
		err = checkPorts(o)
	}
	if err != nil {
		r.fail(number, fmt.Errorf("this %s cannot be read; correct it: %w", k.name, err))
		return
	}
	r.documents = append(r.documents, document{number, k.name, local.Name(o), value, o})
}

// place gives an object the namespace that it is in, and checks its name.
func place(o metav1.Object, namespaced bool) error {
	if bad := validation.IsDNS1123Subdomain(o.GetName()); len(bad) > 0 {
		return fmt.Errorf("metadata.name %q: %s", o.GetName(), strings.Join(bad, "; "))
	}
	switch {
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(metav1.NamespaceDefault)
	}
	if namespace := o.GetNamespace(); namespace != "" {
		if bad := validation.IsDNS1123Label(namespace); len(bad) > 0 {
			return fmt.Errorf("metadata.namespace %q: %s", namespace, strings.Join(bad, "; "))
		}
	}
	return nil
}
