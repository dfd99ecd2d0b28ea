// Package users shows and creates the users of the own cluster's etcd.
package users

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/rights"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	k := &target.Choice{Settings: config.NewSettings()}
	cmd := command.Group("users", "Show and create the users of the own cluster's etcd", usersShowCommand(c, k), usersEnsureCommand(c, k))
	cmd.Long = "Show and create the users of the own cluster's etcd, their roles, and the keys that each role may read and write. A user has no\n" +
		"password: etcd takes the user from the common name of the client certificate.\n\n" +
		"Exit code 0: success. 1: etcd refused a change. 2: wrong usage, or etcd does not answer."
	k.Settings.Register(cmd.PersistentFlags(), "cluster-name", "kvstore-opt", "kvstore-users-file")
	return cmd
}

func usersShowCommand(c *command.Env, k *target.Choice) *cobra.Command {
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	return command.WithOutput(&cobra.Command{
		Use:     "show",
		Short:   "Show the users, their roles and rights, without a connection to etcd",
		Example: "  mesh-agent users show --cluster-name east",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := c.Resolve(cmd, k.Settings)
			if err != nil {
				return err
			}
			users, err := settings.Users()
			if err != nil {
				return err
			}
			rights := rightsOf(settings.ClusterName, users)
			return command.Answer(cmd.OutOrStdout(), printer.Style{}, format, rights, func(p *printer.Page) {
				printer.Rows(p, printer.Table[keyRight]{
					{Title: "ROLE", Text: func(r keyRight) string { return r.Role }},
					{Title: "USERS", Text: func(r keyRight) string { return strings.Join(r.Users, ", ") }},
					{Title: "RIGHT", Text: func(r keyRight) string { return r.Right }},
					{Title: "KEYS", Text: func(r keyRight) string { return r.Keys }},
				}, rights)
			})
		},
	}, format)
}

// usersEnsureCommand is for a job with the certificate of etcd's root user, so that no long-running process needs it.
func usersEnsureCommand(c *command.Env, k *target.Choice) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ensure",
		Short: "Create the users and roles of the own cluster's etcd, and enable authentication",
		Long: "Create the users and roles of 'users show' in the own cluster's etcd, each user with that role only, and enable\n" +
			"authentication. Other users and roles stay unchanged. It can be repeated; `operate --kvstore-ensure-users` does the same.\n" +
			"The client certificate must be that of root or admin-CLUSTER.",
		Example: "  mesh-agent users ensure --cluster-name east --kvstore-opt etcd.config=/etc/mesh/root.yaml",
		Args:    command.NoArgs,
	}
	cmd.Flags().DurationVar(&k.Timeout, "timeout", 10*time.Second, "time limit for each endpoint, and for each answer")
	cmd.RunE = target.Asking(c, k, func(cmd *cobra.Command, _ []string, t *target.Target) error {
		users, err := t.Settings.Users()
		if err != nil {
			return err
		}
		client, err := t.ConnectEtcd(cmd.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		if err := rights.CheckOwner(cmd.Context(), client, t.Settings.ClusterName); err != nil {
			return err
		}
		if err := rights.Provision(cmd.Context(), client, t.Settings.ClusterName, t.Cfg.UserName(), users); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "The etcd of cluster %s has %d users of %d roles, and authentication is on.\n",
			t.Settings.ClusterName, len(users), len(rights.Roles()))
		return err
	})
	return cmd
}

type keyRight struct {
	Role  string   `json:"role"`
	Users []string `json:"users"`
	Right string   `json:"right"` // "all", "read" or "readwrite"
	// From is the first key of the range, Until the first one after it; without
	// Until it is the one key.
	From  string `json:"from"`
	Until string `json:"until,omitempty"`
	Keys  string `json:"keys"` // the same range for users
}

func rightsOf(cluster string, users []rights.User) []keyRight {
	var all []keyRight
	for _, role := range rights.Roles() {
		var names []string
		for _, u := range users {
			if u.Role == role && !slices.Contains(names, u.Name) {
				names = append(names, u.Name)
			}
		}
		if role == rights.RoleRoot {
			all = append(all, keyRight{Role: role, Users: names, Right: "all", Keys: "every key, users and roles"})
		}
		for _, a := range rights.Of(role, cluster) {
			right := keyRight{Role: role, Users: names, Right: "read", From: a.Prefix, Until: a.End(), Keys: keysOf(a)}
			if a.Write {
				right.Right = "readwrite"
			}
			all = append(all, right)
		}
	}
	return all
}

// keysOf formats a range: one key, PREFIX*, or FIRST up to the key after the last.
func keysOf(a etcd.Access) string {
	switch {
	case a.Whole:
		return a.Prefix
	case a.Until == "":
		return a.Prefix + "*"
	}
	return fmt.Sprintf("from %q up to %q", a.Prefix, a.Until)
}
