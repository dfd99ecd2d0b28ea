package config

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// ListenLimits bound what those who come over TCP may have at once, in all and of one
// address (docs/api-security.md). The unix socket has no such bounds.
type ListenLimits struct {
	Connections        uint32 `mapstructure:"listen-max-connections"`
	ConnectionsPerPeer uint32 `mapstructure:"listen-max-connections-per-peer"`
	Watches            uint32 `mapstructure:"listen-max-watches"`
	WatchesPerPeer     uint32 `mapstructure:"listen-max-watches-per-peer"`
	Answers            uint32 `mapstructure:"listen-max-answers"`
	AnswersPerPeer     uint32 `mapstructure:"listen-max-answers-per-peer"`
	States             uint32 `mapstructure:"listen-max-states"`
	StatesPerPeer      uint32 `mapstructure:"listen-max-states-per-peer"`
}

// DefaultListenLimits are the limits without any setting.
func DefaultListenLimits() ListenLimits {
	d := api.DefaultLimits()
	return ListenLimits{
		Connections: uint32(d.Connections.All), ConnectionsPerPeer: uint32(d.Connections.Peer),
		Watches: uint32(d.Watches.All), WatchesPerPeer: uint32(d.Watches.Peer),
		Answers: uint32(d.Answers.All), AnswersPerPeer: uint32(d.Answers.Peer),
		States: uint32(d.States.All), StatesPerPeer: uint32(d.States.Peer),
	}
}

// OfServer are those of the server.
func (c ListenLimits) OfServer() api.Limits {
	limit := func(all, peer uint32) api.Limit { return api.Limit{All: int(all), Peer: int(peer)} }
	return api.Limits{
		Connections: limit(c.Connections, c.ConnectionsPerPeer),
		Watches:     limit(c.Watches, c.WatchesPerPeer),
		Answers:     limit(c.Answers, c.AnswersPerPeer),
		States:      limit(c.States, c.StatesPerPeer),
	}
}

// limitFlag is one of the limits as a flag.
type limitFlag struct {
	Name  string
	Value uint32
	help  string
}

func (c ListenLimits) All() []limitFlag {
	return []limitFlag{
		{"listen-max-connections", c.Connections, "how many connections over TCP there may be at once"},
		{"listen-max-connections-per-peer", c.ConnectionsPerPeer, "how many of them one address may have (an IPv6 /64); loopback is not counted"},
		{"listen-max-watches", c.Watches, "how many watches over TCP there may be at once"},
		{"listen-max-watches-per-peer", c.WatchesPerPeer, "how many of them one address may have; loopback is not counted"},
		{"listen-max-answers", c.Answers, "how many other requests over TCP, such as lists, are answered at once"},
		{"listen-max-answers-per-peer", c.AnswersPerPeer, "how many of them one address may have; loopback is not counted"},
		{"listen-max-states", c.States, "how many watches over TCP are sent their first state, or are far behind, at once"},
		{"listen-max-states-per-peer", c.StatesPerPeer, "how many of them one address may have, loopback too"},
	}
}

func (c ListenLimits) flags(f *pflag.FlagSet) {
	for _, l := range c.All() {
		f.Uint32(l.Name, l.Value, l.help)
	}
}

func (c ListenLimits) validate(note func(flag string, err error)) {
	for _, l := range c.All() {
		if l.Value == 0 {
			note(l.Name, errors.New("0 would refuse everybody: give at least 1"))
		}
	}
}
