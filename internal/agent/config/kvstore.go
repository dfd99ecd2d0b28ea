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
	Kind                       string        `mapstructure:"kvstore" help:"kind of kvstore; etcd is the only one, and the default (Cilium's configuration names it)"`
	ConnectivityTimeout        time.Duration `mapstructure:"kvstore-connectivity-timeout" help:"time that a writer waits for the own cluster's etcd before it gives up"`
	LeaseTTL                   time.Duration `mapstructure:"kvstore-lease-ttl" help:"time that the keys of this process stay in etcd after the process ends, 25s to 24h"`
	PeriodicSync               time.Duration `mapstructure:"kvstore-periodic-sync" help:"interval at which the agent checks the identities that it uses, and writes their missing keys again"`
	MaxConsecutiveQuorumErrors uint32        `mapstructure:"kvstore-max-consecutive-quorum-errors" help:"number of consecutive health reads that may fail before the client reconnects"`
}

func (c KVStoreConfig) validate(note func(flag string, err error)) {
	if c.Kind != "" && c.Kind != "etcd" {
		note("kvstore", fmt.Errorf("%q is not a kvstore that the agent can use: give etcd, or leave the flag out", c.Kind))
	}
	note("kvstore-connectivity-timeout", aboveZero(c.ConnectivityTimeout))
	note("kvstore-lease-ttl", etcd.CheckLeaseTTL(c.LeaseTTL))
	note("kvstore-periodic-sync", aboveZero(c.PeriodicSync))
}

// KVStoreOptions are the options of all kvstore clients.
func (c Config) KVStoreOptions() (etcd.Options, error) {
	o, err := etcd.ParseOptions(c.KVStoreOpt)
	o.LeaseTTL = c.KVStore.LeaseTTL
	o.Schedule = waiting.NewSchedule(time.Second)
	o.MaxConsecutiveQuorumErrors = int(c.KVStore.MaxConsecutiveQuorumErrors)
	o.ClusterSize = c.GivenSize
	o.Traces = etcd.NewTraces()
	return o, err
}

// NodeAddress returns the address of this node: the given one, otherwise the first global one, IPv4 before IPv6.
func (c Config) NodeAddress() (netip.Addr, error) {
	if c.NodeIP != "" {
		a, err := netip.ParseAddr(c.NodeIP)
		if err != nil || a.Zone() != "" || a.IsUnspecified() {
			return netip.Addr{}, fmt.Errorf("%q is not the address of a node", c.NodeIP)
		}
		return a.Unmap(), nil
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
func (c Config) GivenSize() int { return int(c.ClusterSize) }
