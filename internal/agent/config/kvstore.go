package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// KVStoreConfig are the settings of a writer to the own kvstore.
type KVStoreConfig struct {
	Kind                       string        `flag:"kvstore" help:"kind of kvstore; etcd is the only one, and the default (Cilium's configuration names it)"`
	ConnectivityTimeout        time.Duration `flag:"kvstore-connectivity-timeout" rule:"above zero" help:"time that a writer waits for the own cluster's etcd before it gives up"`
	LeaseTTL                   time.Duration `flag:"kvstore-lease-ttl" help:"time that the keys of this process stay in etcd after the process ends, 25s to 24h"`
	PeriodicSync               time.Duration `flag:"kvstore-periodic-sync" rule:"above zero" help:"interval at which the agent checks the identities that it uses, and writes their missing keys again"`
	MaxConsecutiveQuorumErrors uint32        `flag:"kvstore-max-consecutive-quorum-errors" help:"number of consecutive health reads that may fail before the client reconnects"`
}

func (c *Config) parseKVStore(wrong *mistakes) {
	k := c.KVStore
	c.KVStoreOpt = parsed(wrong, KVStoreFlag, etcd.ParseOptions, c.Flags.KVStoreOpt)
	c.KVStoreOpt.LeaseTTL, c.KVStoreOpt.MaxConsecutiveQuorumErrors, c.KVStoreOpt.ClusterSize = k.LeaseTTL, int(k.MaxConsecutiveQuorumErrors), c.GivenSize
	if k.Kind != "" && k.Kind != "etcd" {
		wrong.note("kvstore", fmt.Errorf("%q is not a kvstore that the agent can use: give etcd, or leave the flag out", k.Kind))
	}
	wrong.note("kvstore-lease-ttl", etcd.CheckLeaseTTL(k.LeaseTTL))
}

// KVStoreOptions returns the options of a kvstore client. Clients that shall work together have the same ones.
func (c Config) KVStoreOptions() etcd.Options {
	o := c.KVStoreOpt
	o.Schedule, o.Traces = waiting.NewSchedule(time.Second), etcd.NewTraces()
	return o
}

func nodeAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.IsUnspecified() {
		return netip.Addr{}, fmt.Errorf("%q is not the address of a node", text)
	}
	return a.Unmap(), nil
}

// NodeAddress returns the address of this node: the given one, otherwise the first global one, IPv4 before IPv6.
func (c Config) NodeAddress() (netip.Addr, error) {
	if c.NodeIP.IsValid() {
		return c.NodeIP, nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("looking for this node's address, which --node-ip gives: %w", err)
	}
	var six netip.Addr
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		switch a := p.Addr(); {
		case err != nil || !a.IsGlobalUnicast():
		case a.Is4():
			return a, nil
		case !six.IsValid():
			six = a
		}
	}
	if !six.IsValid() {
		return six, errors.New("this node has no global address that could name it; give one with --node-ip")
	}
	return six, nil
}

// GivenSize returns the size of the own cluster from the settings; 0 when it is not set.
func (f Flags) GivenSize() int { return int(f.ClusterSize) }
