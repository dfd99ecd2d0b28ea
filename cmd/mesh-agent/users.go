package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// usersCommand is about the users of the own cluster's etcd.
func (c *cli) usersCommand() *cobra.Command {
	k := &kvChoice{settings: newSettings()}
	cmd := group("users", "Show and make the users of the own cluster's etcd", c.usersShowCommand(k), c.usersEnsureCommand(k))
	cmd.Long = "Show and make the users of the own cluster's etcd, their roles, and what each role may read and write. A user has no\n" +
		"password: etcd takes the user from the common name of the client certificate.\n\n" +
		"Exit code 0: it is done. 1: etcd did not do it. 2: wrong usage, or etcd does not answer."
	k.settings.register(cmd.PersistentFlags(), "cluster-name", "kvstore-opt", "kvstore-users-file")
	return cmd
}

func (c *cli) usersShowCommand(k *kvChoice) *cobra.Command {
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show the users, their roles and rights; asks nobody",
		Example: "  mesh-agent users show --cluster-name east",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settled, err := c.settle(cmd, k.settings)
			if err != nil {
				return err
			}
			users, err := settled.users()
			if err != nil {
				return err
			}
			rights := rightsOf(settled.ClusterName, users)
			if format.Structured() {
				return format.Object(cmd.OutOrStdout(), rights)
			}
			p := printer.NewPage(cmd.OutOrStdout(), printer.Style{})
			printer.Rows(p, rightsTable(), rights)
			return p.Flush()
		},
	}
	cmd.Flags().VarP(format, "output", "o", "form of the output")
	return cmd
}

// usersEnsureCommand is for a job that has the certificate of etcd's root, so that
// nothing that keeps running has to have it.
func (c *cli) usersEnsureCommand(k *kvChoice) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ensure",
		Short: "Give the own cluster's etcd its users and roles, and turn authentication on",
		Long: "Give the own cluster's etcd the users and roles of 'users show', each user that role alone, and turn authentication\n" +
			"on. Other users and roles stay as they are. It may be repeated; `operate --kvstore-ensure-users` does the same.\n" +
			"The client certificate must be that of root or admin-CLUSTER.",
		Example: "  mesh-agent users ensure --cluster-name east --kvstore-opt etcd.config=/etc/mesh/root.yaml",
		Args:    noArgs,
	}
	cmd.Flags().DurationVar(&k.timeout, "timeout", 10*time.Second, "how long to wait for each endpoint, and for each answer")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := c.target(cmd, k)
		if err != nil {
			return err
		}
		users, err := t.settled.users()
		if err != nil {
			return err
		}
		client, err := t.connect(cmd.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		if err := operate.CheckOwner(cmd.Context(), client, t.settled.ClusterName); err != nil {
			return err
		}
		if err := operate.Provision(cmd.Context(), client, t.settled.ClusterName, t.cfg.UserName(), users); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "The etcd of cluster %s has %d users of %d roles, and authentication is on.\n",
			t.settled.ClusterName, len(users), len(operate.Roles()))
		return err
	}
	return cmd
}

// users are those that the own cluster's etcd is to have. The file is read each
// time.
func (c Config) users() ([]operate.User, error) {
	if err := wire.ValidateClusterName(c.ClusterName); err != nil {
		return nil, usagef("--cluster-name: %q %w", c.ClusterName, err)
	}
	if c.ClusterName == wire.DefaultClusterName {
		return nil, usageError{errors.New("whose users? Give the name of the own cluster with --cluster-name")}
	}
	users := operate.Users(c.ClusterName)
	if c.Operate.UsersFile == "" {
		return users, nil
	}
	more, err := operate.ReadUsers(c.Operate.UsersFile, c.ClusterName)
	if err != nil {
		return nil, usagef("--kvstore-users-file: %w", err)
	}
	return append(users, more...), nil
}

// keyRight is one right of a role.
type keyRight struct {
	Role  string   `json:"role"`
	Users []string `json:"users"`
	Right string   `json:"right"` // "all", "read" or "readwrite"
	// From is the first key of the range, Until the first one after it; without
	// Until it is the one key.
	From  string `json:"from"`
	Until string `json:"until,omitempty"`
	Keys  string `json:"keys"` // the same, as people read it
}

func rightsOf(cluster string, users []operate.User) []keyRight {
	var all []keyRight
	for _, role := range operate.Roles() {
		var names []string
		for _, u := range users {
			if u.Role == role && !slices.Contains(names, u.Name) {
				names = append(names, u.Name)
			}
		}
		if role == operate.RoleRoot {
			all = append(all, keyRight{Role: role, Users: names, Right: "all", Keys: "every key, users and roles"})
		}
		for _, a := range operate.Rights(role, cluster) {
			right := keyRight{Role: role, Users: names, Right: "read", From: a.Prefix, Until: a.End(), Keys: keysOf(a)}
			if a.Write {
				right.Right = "readwrite"
			}
			all = append(all, right)
		}
	}
	return all
}

// keysOf shows a range: one key, PREFIX*, or FIRST up to the key after the last.
func keysOf(a etcd.Access) string {
	switch {
	case a.Whole:
		return a.Prefix
	case a.Until == "":
		return a.Prefix + "*"
	}
	return fmt.Sprintf("from %q up to %q", a.Prefix, a.Until)
}

func rightsTable() printer.Table[keyRight] {
	return printer.Table[keyRight]{
		{Title: "ROLE", Text: func(r keyRight) string { return r.Role }},
		{Title: "USERS", Text: func(r keyRight) string { return strings.Join(r.Users, ", ") }},
		{Title: "RIGHT", Text: func(r keyRight) string { return r.Right }},
		{Title: "KEYS", Text: func(r keyRight) string { return r.Keys }},
	}
}
