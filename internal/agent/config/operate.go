package config

import (
	"errors"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// OperateConfig are the settings of `operate`.
type OperateConfig struct {
	GCInterval     time.Duration `mapstructure:"identity-gc-interval" help:"operate: time between two rounds that delete identities which nobody uses in both; 0 never does"`
	GCPerMinute    int           `mapstructure:"identity-gc-rate-limit" help:"operate: how many identities are deleted in a minute at most; 0 is no limit"`
	ServiceExports bool          `mapstructure:"clustermesh-enable-mcs-api" help:"operate: publish the ServiceExports of the own cluster"`
	// NodesAndAddresses is for a cluster whose agents do not write to its kvstore.
	NodesAndAddresses bool   `mapstructure:"publish-nodes-and-addresses" help:"operate: publish the nodes and addresses of the own cluster too, from its CiliumNodes and CiliumEndpoints, where Cilium does not write to its kvstore (CRD mode)"`
	EnsureUsers       bool   `mapstructure:"kvstore-ensure-users" help:"operate: give the own etcd the users and roles of a mesh, and turn authentication on"`
	UsersFile         string `mapstructure:"kvstore-users-file" help:"operate, users: YAML file with further users of the own etcd: users: [{name: remote-east, role: remote}]"`
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
