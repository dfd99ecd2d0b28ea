package resource

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// completionLimit is the maximum number of names to offer: completion must not load an agent.
const completionLimit = 1000

// complete requests the names of a resource. There are too many addresses and identities for that; it completes only
// addresses of a network, when its first parts were typed.
func (res Kind[T]) complete(ctx context.Context, cl *client.Client, begun string) []string {
	query := client.Query{Limit: completionLimit}
	switch res.Plural {
	case "identities":
		return nil
	case "ips":
		within, ok := networkOf(begun)
		if !ok {
			return nil
		}
		query.Prefix = within.String()
	}
	var names []string
	// After an incomplete answer, the names so far are offered.
	_, _ = each(ctx, cl, res.Plural, query, func(v T) { names = append(names, res.name(v)) })
	return names
}

// networkOf returns the network of all addresses that begin with the whole parts of a text: 10.2.1 has two whole
// parts; false without any.
func networkOf(begun string) (netip.Prefix, bool) {
	separator, rest, most := ".", ".0", 4
	if strings.Contains(begun, ":") {
		separator, rest, most = ":", ":0", 8
	}
	parts := strings.Split(begun, separator)
	parts = parts[:len(parts)-1] // the last part may be incomplete
	if i := slices.Index(parts, ""); i >= 0 {
		parts = parts[:i] // after :: the positions of the parts are unknown
	}
	n := len(parts)
	if n == 0 || n >= most {
		return netip.Prefix{}, false
	}
	addr, err := netip.ParseAddr(strings.Join(parts, separator) + strings.Repeat(rest, most-n))
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, n*addr.BitLen()/most), true
}

// CompleteAddress completes a claimed address as the only argument.
func CompleteAddress(c *command.Env) command.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var addresses []string
		for _, name := range askNames(c, cmd, "ips", begun) {
			if p, err := netip.ParsePrefix(name); err == nil && p.IsSingleIP() {
				addresses = append(addresses, p.Addr().String())
			}
		}
		return command.Begun(addresses, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteService completes the name of a service as the only argument, without its port.
func CompleteService(c *command.Env) command.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return command.Begun(askNames(c, cmd, "services", begun), begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteObject completes RESOURCE [NAME].
func CompleteObject(c *command.Env) command.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		var names []string
		switch len(args) {
		case 0:
			names = Names()
		case 1:
			names = askNames(c, cmd, args[0], begun)
		}
		return command.Begun(names, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteArgument completes the name of a cluster as the only argument.
func CompleteArgument(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return askNames(c, cmd, "clusters", "")
	})
}

// CompleteCluster completes the name of a cluster.
func CompleteCluster(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, _ []string) []string { return askNames(c, cmd, "clusters", "") })
}

// CompleteNamespace completes the name of a namespace that has a service.
func CompleteNamespace(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, _ []string) []string {
		var namespaces []string
		for _, name := range askNames(c, cmd, "services", "") {
			namespace, _, _ := strings.Cut(name, "/")
			namespaces = append(namespaces, namespace)
		}
		slices.SortFunc(namespaces, natural.Compare)
		return slices.Compact(namespaces)
	})
}

// CompleteKind completes a kind of the agent's conflicts or events.
func CompleteKind(c *command.Env) command.Completer {
	return command.Complete(func(cmd *cobra.Command, args []string) []string {
		if len(args) == 0 {
			return nil
		}
		return ask(c, cmd, func(ctx context.Context, cl *client.Client) (kinds []string) {
			var err error
			switch {
			case Conflicts().Is(args[0]):
				err = Each(ctx, cl, Conflicts().Plural, func(o api.Conflict) { kinds = append(kinds, o.Kind) })
			case Events().Is(args[0]):
				err = Each(ctx, cl, Events().Plural, func(o api.Event) { kinds = append(kinds, o.Kind) })
			}
			if err != nil {
				return nil
			}
			slices.Sort(kinds)
			return slices.Compact(kinds)
		})
	})
}

// CompleteField completes the path of a field of the given RESOURCE.
func CompleteField(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	res, err := Find(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return command.Begun(res.sortable(), begun), cobra.ShellCompDirectiveNoFileComp
}

// sortable returns the fields that have one value.
func (res Kind[T]) sortable() (paths []string) {
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch field.Type.Kind() {
		case reflect.Slice, reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
		default:
			paths = append(paths, "."+name)
		}
	}
	return paths
}

func askNames(c *command.Env, cmd *cobra.Command, resource, begun string) []string {
	res, err := Find(resource)
	if err != nil {
		return nil
	}
	return ask(c, cmd, func(ctx context.Context, cl *client.Client) []string { return res.complete(ctx, cl, begun) })
}

// ask sends a request to an agent, with the time limit of a completion.
func ask(c *command.Env, cmd *cobra.Command, names func(context.Context, *client.Client) []string) []string {
	cl, err := c.Connect(cmd)
	if err != nil {
		return nil
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), c.Completion)
	defer cancel()
	return names(ctx, cl)
}
