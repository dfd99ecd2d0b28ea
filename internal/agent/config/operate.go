package config

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// OperateConfig are the settings of `operate`.
type OperateConfig struct {
	GCInterval     time.Duration `mapstructure:"identity-gc-interval"`
	GCPerMinute    int           `mapstructure:"identity-gc-rate-limit"`
	ServiceExports bool          `mapstructure:"clustermesh-enable-mcs-api"`
	// NodesAndAddresses is for a cluster whose agents do not write to its kvstore.
	NodesAndAddresses bool   `mapstructure:"publish-nodes-and-addresses"`
	EnsureUsers       bool   `mapstructure:"kvstore-ensure-users"`
	UsersFile         string `mapstructure:"kvstore-users-file"`
}

func (c OperateConfig) flags(f *pflag.FlagSet) {
	f.Duration("identity-gc-interval", c.GCInterval, "operate: time between two rounds that delete identities which nobody uses in both; 0 never does")
	f.Int("identity-gc-rate-limit", c.GCPerMinute, "operate: how many identities are deleted in a minute at most; 0 is no limit")
	f.Bool("clustermesh-enable-mcs-api", c.ServiceExports, "operate: publish the ServiceExports of the own cluster")
	f.Bool("publish-nodes-and-addresses", c.NodesAndAddresses,
		"operate: publish the nodes and addresses of the own cluster too, from its CiliumNodes and CiliumEndpoints, where Cilium does not write to its kvstore (CRD mode)")
	f.Bool("kvstore-ensure-users", c.EnsureUsers, "operate: give the own etcd the users and roles of a mesh, and turn authentication on")
	f.String("kvstore-users-file", c.UsersFile, "operate, users: YAML file with further users of the own etcd: users: [{name: remote-east, role: remote}]")
}

func (c OperateConfig) validate(note func(flag string, err error), cluster string, described bool) {
	if c.NodesAndAddresses && !described {
		note("publish-nodes-and-addresses", errors.New("there is no description of the own cluster: give --kubernetes, --kubeconfig or --local-manifests"))
	}
	note("identity-gc-interval", notNegative(c.GCInterval))
	note("identity-gc-rate-limit", notNegative(c.GCPerMinute))
	if c.UsersFile == "" {
		return
	}
	if !c.EnsureUsers {
		note("kvstore-users-file", errors.New("it is only read with --kvstore-ensure-users"))
	}
	_, err := operate.ReadUsers(c.UsersFile, cluster)
	note("kvstore-users-file", err)
}

// Users are those that the own cluster's etcd is to have. The file is read each
// time.
func (c Config) Users() ([]operate.User, error) {
	if err := wire.ValidateClusterName(c.ClusterName); err != nil {
		return nil, exit.Usagef("--cluster-name: %q %w", c.ClusterName, err)
	}
	if c.ClusterName == wire.DefaultClusterName {
		return nil, exit.UsageError{Err: errors.New("whose users? Give the name of the own cluster with --cluster-name")}
	}
	users := operate.Users(c.ClusterName)
	if c.Operate.UsersFile == "" {
		return users, nil
	}
	more, err := operate.ReadUsers(c.Operate.UsersFile, c.ClusterName)
	if err != nil {
		return nil, exit.Usagef("--kvstore-users-file: %w", err)
	}
	return append(users, more...), nil
}
