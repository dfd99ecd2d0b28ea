package budget

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Parse parses budgets from options on top of the defaults. The options are value (bytes), events (a second), list (a
// duration), and RESOURCE.keys and RESOURCE.bytes. Each is for all clusters, or for one if the name begins with it, as
// in east.ips.keys or east.events. Sizes are written like quantities of Kubernetes (512Mi, 1M, 1048576); 0 means no
// limit. The error names every wrong option.
func Parse(options map[string]string) (Budgets, error) { return ParseOn(Default(), options) }

// ParseOn is Parse on top of other defaults.
func ParseOn(defaults Budget, options map[string]string) (Budgets, error) {
	b := Budgets{Budget: defaults}
	var errs []error
	for _, o := range sorted(options) {
		if err := b.set(o, options[o.key]); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", o.key, options[o.key], err))
		}
	}
	return b, errors.Join(errs...)
}

// option is the parsed key of one setting.
type option struct {
	key      string
	cluster  string // empty for all clusters
	resource string // empty for an option that is not about a resource
	field    string
}

// sorted parses the keys. Options for all clusters come first.
func sorted(options map[string]string) []option {
	all := make([]option, 0, len(options))
	for key := range maps.Keys(options) {
		all = append(all, split(key))
	}
	slices.SortFunc(all, func(a, b option) int {
		return cmp.Or(cmp.Compare(len(a.cluster), len(b.cluster)), strings.Compare(a.key, b.key))
	})
	return all
}

func split(key string) option {
	o := option{key: key, field: key}
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		o.cluster, o.field = key[:i], key[i+1:]
	}
	if o.field == "keys" || o.field == "bytes" {
		o.resource, o.cluster = o.cluster, ""
		if i := strings.LastIndexByte(o.resource, '.'); i >= 0 {
			o.cluster, o.resource = o.resource[:i], o.resource[i+1:]
		}
	}
	return o
}

func (b *Budgets) set(o option, value string) error {
	if o.cluster != "" {
		if err := wire.ValidateClusterName(o.cluster); err != nil {
			return fmt.Errorf("%q is no name of a cluster, which %w", o.cluster, err)
		}
	}
	changed := b.Of(o.cluster)
	changed.Resources = maps.Clone(changed.Resources)
	if err := changed.set(o, value); err != nil {
		return err
	}
	if o.cluster == "" {
		b.Budget = changed
		return nil
	}
	if b.Clusters == nil {
		b.Clusters = make(map[string]Budget)
	}
	b.Clusters[o.cluster] = changed
	return nil
}

func (b *Budget) set(o option, value string) error {
	switch o.field {
	case "keys", "bytes":
		return b.setShare(o, value)
	case "value":
		return setSize(&b.Value, value, leastBytes, mostValue)
	case "events":
		return setCount(&b.Events, value, mostEvents)
	case "list":
		span, err := time.ParseDuration(value)
		if err != nil || span < 0 {
			return errors.New("want a duration with its unit, such as 90s or 10m, or 0 for no bound")
		}
		if span != 0 && (span < leastList || span > mostList) {
			return fmt.Errorf("want %s to %s, or 0 for no bound", leastList, mostList)
		}
		b.List = span
		return nil
	}
	return errors.New("want value, events, list, or RESOURCE.keys or RESOURCE.bytes such as ips.keys, or one of these behind the name of a cluster, as in east.ips.keys")
}

func (b *Budget) setShare(o option, value string) error {
	r := wire.Resource(o.resource)
	if !slices.Contains(wire.Resources(), r) {
		return fmt.Errorf("%q is no resource: want one of %v", o.resource, wire.Resources())
	}
	share := b.Resources[r]
	var err error
	if o.field == "keys" {
		err = setCount(&share.Keys, value, mostKeys)
	} else {
		err = setSize(&share.Bytes, value, leastBytes, mostBytes)
	}
	if err == nil {
		b.Resources[r] = share
	}
	return err
}

// The allowed range of an option that is not 0. A value below the minimum would refuse every cluster, and one above the
// maximum would limit nothing.
const (
	mostKeys   = 100_000_000
	mostEvents = 10_000_000
	leastBytes = kib
	mostBytes  = 1 << 40
	mostValue  = 12 * mib // of a message (docs/budgets.md)
	leastList  = time.Second
	mostList   = 24 * time.Hour
)

func setCount(to *int, value string, most int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("want a whole number up to %d, or 0 for no bound", most)
	}
	*to = n
	return nil
}

func setSize(to *int64, value string, least, most int64) error {
	n, err := ParseSize(value)
	if err != nil {
		return err
	}
	if n != 0 && (n < least || n > most) {
		return fmt.Errorf("want %s to %s, or 0 for no bound", resource.NewQuantity(least, resource.BinarySI), resource.NewQuantity(most, resource.BinarySI))
	}
	*to = n
	return nil
}

// ParseSize parses a number of bytes in the form of Kubernetes quantities.
func ParseSize(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	n, whole := q.AsInt64()
	if err != nil || !whole || n < 0 {
		return 0, errors.New("want a number of bytes, such as 512Mi or 1048576, or 0 for no bound")
	}
	return n, nil
}
