// Package config is the configuration of the program: the values of its flags, environment variables and settings
// file, parsed once into their types. Errors name the place that a value came from.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mode is a mode of the program.
type Mode string

// The modes; each is a command.
const (
	ModeRun     Mode = "run"
	ModeOperate Mode = "operate"
	ModeMirror  Mode = "mirror"
)

// Config is the configuration of the program: the flags, and the values of those flags whose text has to be parsed.
// Where a value has the name of its flag's field, it hides the text. [Flags.Typed] makes it.
type Config struct {
	Flags

	Own               wire.ClusterInfo // the own cluster
	Layout            wire.Layout      // of identities, from --max-connected-clusters
	NodeIP            netip.Addr       // the zero value if it is not given (NodeAddress)
	PodLabels         *publish.LabelFilter
	KVStoreOpt        etcd.Options // KVStoreOptions returns them for a client
	AllocationMode    modes.Mode
	DisconnectPolicy  disconnect.Policy
	RemoteBudget      budget.Budgets
	RemoteMemory      *int64 // in bytes; nil if it is not given (RemoteMemoryLimit)
	ClaimRules        ipcache.Rules
	ClaimPolicy       *claims.Policy // the contents of --claim-policy-file; nil without a file
	MirrorBudget      budget.Budgets // --remote-budget in a mirror, which has other defaults
	MirrorRate        syncstore.Rate // of the writes for one remote cluster
	MirrorRoom        mirror.Room
	ExportLabels      mcs.Allowed // labels of remote exports that own objects may have
	ExportAnnotations mcs.Allowed // the same of annotations
	DNSZones          []string    // at least one
	DNSClients        []netip.Prefix
	XDSMemory         int64    // in bytes
	HostNames         []string // that a request of the API may be for
}

// Typed returns the configuration that the flags mean. The error has all mistakes in them, and each names its flags.
// A value with a mistake is not usable, all others are. Files that flags name are read.
func (f Flags) Typed() (Config, error) {
	c, wrong := f.typed()
	if len(wrong) > 0 {
		return c, wrong
	}
	return c, nil
}

func (f Flags) typed() (Config, mistakes) {
	c, wrong := Config{Flags: f}, new(mistakes)
	visit(reflect.ValueOf(f), "", func(field reflect.StructField, v reflect.Value, _ string) {
		wrong.note(field.Tag.Get("flag"), checkNumber(field.Tag.Get("rule"), v))
	})
	c.parseOwn(wrong)
	c.parseRemotes(wrong)
	c.parseKVStore(wrong)
	c.parseLocal(wrong)
	c.parseOperate(wrong)
	c.parseAllocation(wrong)
	c.parseMirror(wrong)
	c.parseClaims(wrong)
	c.parseDNS(wrong)
	c.parseXDS(wrong)
	c.parseListen(wrong)
	wrong.note("log-level", logging.CheckLevel(f.LogLevel))
	wrong.note("log-format", logging.CheckFormat(f.LogFormat))
	return c, *wrong
}

func (c *Config) parseOwn(wrong *mistakes) {
	c.Own = wire.ClusterInfo{Name: c.ClusterName, ID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters}
	var err error
	if c.Layout, err = wire.NewLayout(c.MaxConnectedClusters); err != nil {
		wrong.note("max-connected-clusters", err)
	} else {
		wrong.note("cluster-name/cluster-id", c.Own.Validate())
	}
	if c.NodeName == "" {
		wrong.note("node-name", errors.New("must not be empty"))
	}
	if c.Flags.NodeIP != "" {
		c.NodeIP = parsed(wrong, "node-ip", nodeAddress, c.Flags.NodeIP)
	}
}

// parsed returns the value of what a flag is given, and notes a mistake in it.
func parsed[G, V any](wrong *mistakes, flag string, parse func(G) (V, error), given G) V {
	v, err := parse(given)
	wrong.note(flag, err)
	return v
}

// checkNumber returns an error for a number that breaks the rule of its flag.
func checkNumber(rule string, v reflect.Value) error {
	switch rule {
	case "":
	case "not negative":
		if v.Int() < 0 {
			return fmt.Errorf("%v is negative", v)
		}
	case "above zero":
		if v.Int() <= 0 {
			return fmt.Errorf("%v is not above zero", v)
		}
	case "permits clients":
		if v.Uint() == 0 {
			return errors.New("0 would refuse all clients: give at least 1")
		}
	default:
		panic("config: there is no rule " + rule)
	}
	return nil
}

// mistake is a mistake in the values of flags, from any source.
type mistake struct {
	flags []string
	err   error
}

// Error implements error: the text names the flags.
func (m *mistake) Error() string {
	return fmt.Sprintf("--%s: %v", strings.Join(m.flags, " and --"), m.err)
}

type mistakes []*mistake

// note adds the mistake in a flag, or in several, separated by slashes; nil is none.
func (m *mistakes) note(flags string, err error) {
	if err != nil {
		*m = append(*m, &mistake{strings.Split(flags, "/"), err})
	}
}

// of returns the mistakes in any of these flags.
func (m mistakes) of(flags ...string) (some mistakes) {
	for _, one := range m {
		if slices.ContainsFunc(one.flags, func(flag string) bool { return slices.Contains(flags, flag) }) {
			some = append(some, one)
		}
	}
	return some
}

func (m mistakes) Error() string { return printer.Join(m, "; ", (*mistake).Error) }
