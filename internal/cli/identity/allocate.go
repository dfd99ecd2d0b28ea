package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const releaseTimeout = 10 * time.Second // for the cleanup after an interrupt

type allocated struct {
	ID     uint32            `json:"id"`
	Labels map[string]string `json:"labels"`
	New    bool              `json:"new"`  // it was created for this
	Node   string            `json:"node"` // the node that holds the reference
}

func identityAllocateCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var once bool
	format := printer.NewFormat(command.Plain, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "allocate LABEL...",
		Short: "Allocate the identity of labels, and hold it",
		Long: "Allocate the identity of labels, written SOURCE:KEY=VALUE, and print its number. The command adds the label with the\n" +
			"name of the cluster. It holds the reference of this node (--node-ip) until you interrupt it, and then deletes the\n" +
			"reference. With --once the command ends at once, and the reference ends with its lease (--kvstore-lease-ttl). If no\n" +
			"other node has a reference by then, garbage collection deletes the identity.",
		Example: "  mesh-agent identity allocate --kvstore-opt etcd.address=http://127.0.0.1:2379 --cluster-name east --cluster-id 1 \\\n" +
			"    k8s:app=web k8s:io.kubernetes.pod.namespace=shop --once",
		Args: command.Arguments(1, math.MaxInt, "one LABEL or more"),
		RunE: onLabels(c, k, func(cmd *cobra.Command, w *identityWriter, labels wire.Labels) error {
			id, isNew, err := w.ids.Allocate(cmd.Context(), labels)
			if err != nil {
				return err
			}
			stored, err := w.cluster.Own(labels)
			if err != nil { // reserved identities are not stored
				stored = labels
			}
			if format.Structured() {
				err = format.Object(cmd.OutOrStdout(), allocated{id, stored.Map(), isNew, w.node})
			} else {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			}
			if err != nil || once {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			command.Note(cmd.ErrOrStderr(), fmt.Sprintf("Holding the reference of %s; interrupt to give it back.", w.node))
			<-ctx.Done()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer cancel()
			_, err = w.ids.Release(ctx, labels)
			return err
		}),
	}
	cmd.Flags().BoolVar(&once, "once", false, "end at once; the reference ends with its lease")
	return command.WithOutput(cmd, format)
}

func identityReleaseCommand(c *command.Env, k *target.Choice) *cobra.Command {
	return &cobra.Command{
		Use:   "release LABEL...",
		Short: "Delete a node's reference to an identity",
		Long: "Delete the reference of this node (--node-ip) to the identity of labels, written SOURCE:KEY=VALUE, such as a\n" +
			"reference of 'allocate --once'. The identity stays until garbage collection finds it unused in two rounds. If an\n" +
			"agent on that node uses the identity, the agent writes its reference again.",
		Example: "  mesh-agent identity release --kvstore-opt etcd.address=http://127.0.0.1:2379 --cluster-name east --cluster-id 1 \\\n" +
			"    k8s:app=web k8s:io.kubernetes.pod.namespace=shop --node-ip 10.0.0.1",
		Args: command.Arguments(1, math.MaxInt, "one LABEL or more"),
		RunE: onLabels(c, k, func(cmd *cobra.Command, w *identityWriter, labels wire.Labels) error {
			id, err := w.forget(cmd.Context(), labels)
			if err == nil {
				command.Note(cmd.ErrOrStderr(), fmt.Sprintf("%s holds no reference of identity %d any more.", w.node, id))
			}
			return err
		}),
	}
}

func parseLabels(args []string) (wire.Labels, error) {
	var labels wire.Labels
	for _, arg := range args {
		l := wire.ParseLabel(arg)
		if l.Key == "" {
			return nil, exit.Usagef("%q is no label: want SOURCE:KEY=VALUE, such as k8s:app=web", arg)
		}
		labels = append(labels, l)
	}
	return labels, nil
}

type identityWriter struct {
	node    string
	cluster identity.Owner
	client  *kvstore.Durable // nil where identities are only in the Kubernetes API
	backend *modes.Backend
	ids     *identity.Allocator
}

// onLabels returns the function of a command that uses an allocator for the labels in its arguments.
func onLabels(c *command.Env, k *target.Choice, f func(*cobra.Command, *identityWriter, wire.Labels) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		labels, err := parseLabels(args)
		if err != nil {
			return err
		}
		if err := local(k); err != nil {
			return err
		}
		t, err := allocationTarget(c, cmd, k)
		if err != nil {
			return err
		}
		own, err := ownCluster(t, k)
		if err != nil {
			return err
		}
		log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
		return allocating(t, cmd.Context(), own, log, func(w *identityWriter) error { return f(cmd, w, labels) })
	}
}

// allocationTarget returns the place where identities are allocated, by the mode of the settings.
func allocationTarget(c *command.Env, cmd *cobra.Command, k *target.Choice) (*target.Target, error) {
	t, err := target.ChooseAny(c, cmd, k)
	if err != nil {
		return nil, err
	}
	err = k.Settings.Check(config.AllocationMode, config.AllocationNamespace, config.NodesAndAddresses, "node-ip")
	if err == nil && t.Settings.AllocationMode.InKVStore() && t.Cfg == nil {
		return target.Choose(c, cmd, k) // returns the error for the missing setting
	}
	return t, err
}

func allocating(t *target.Target, caller context.Context, own identity.Owner, log *slog.Logger, f func(*identityWriter) error) error {
	w := &identityWriter{cluster: own}
	if t.Settings.AllocationMode.InKVStore() {
		w.client = t.Durable()
	}
	ids, err := w.prepare(t.Settings, log)
	if err != nil {
		return err
	}
	// The allocator releases its references after an interrupt, so its goroutines end only when f has returned.
	ctx, cancel := context.WithCancel(context.WithoutCancel(caller))
	var running errgroup.Group
	if w.client != nil {
		running.Go(func() error { return w.client.Run(ctx) })
	}
	running.Go(func() error { return ids.Run(ctx) })
	running.Go(func() error { return w.backend.Run(ctx) })
	if err = w.connected(caller, t.Settings.KVStore.ConnectivityTimeout); err == nil {
		err = f(w)
	}
	cancel()
	_ = running.Wait() // they end with the context
	if w.client != nil {
		w.client.Close()
	}
	return err
}

func (w *identityWriter) prepare(c config.Config, log *slog.Logger) (*allocator.Allocator, error) {
	if err := w.cluster.Validate(); err != nil {
		return nil, exit.Usagef("%s", printer.OneLine(err))
	}
	address, err := c.NodeAddress()
	if err != nil {
		return nil, exit.Usagef("--node-ip: %w", err)
	}
	if w.node, err = identity.NodeSuffix(address); err != nil {
		return nil, err
	}
	in, err := c.AllocationBackend(nil)
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	in.Node, in.Keys, in.Log = w.node, identity.Key{}, log
	if w.client != nil {
		in.Writer = w.client
	}
	if w.backend, err = modes.New(in); err != nil {
		return nil, err
	}
	ids, err := allocator.NewAllocator(w.backend.Backend, allocator.WithCluster(w.cluster.Layout, w.cluster.ID), allocator.WithValidator(w.cluster.AcceptOwn),
		allocator.WithMasterKeyProtection(), allocator.WithSyncInterval(c.KVStore.PeriodicSync), allocator.WithLogger(log))
	if err == nil {
		w.ids, err = identity.NewAllocator(w.cluster, ids)
	}
	return ids, err
}

// connected checks the Kubernetes API and waits for the kvstore, where the mode needs them.
func (w *identityWriter) connected(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if w.backend.Kubernetes != nil {
		if err := w.backend.Kubernetes.Check(ctx); err != nil {
			return err
		}
	}
	if w.client == nil {
		return nil
	}
	if err := w.client.WaitConnected(ctx); err != nil {
		return &kvstore.KeyError{Op: "connect", Err: err}
	}
	w.client.BootstrapComplete() // the only sync is one list of the mappings, which counts as one operation
	return nil
}

// forget deletes this node's reference, also when another process created it.
func (w *identityWriter) forget(ctx context.Context, labels wire.Labels) (uint64, error) {
	own, err := w.cluster.Own(labels)
	if err != nil {
		return 0, exit.Usagef("%w", err)
	}
	if w.client == nil {
		return 0, exit.Usagef("--%s=%s: this command deletes a reference in the kvstore; in the Kubernetes API it ends with the process, within --kvstore-lease-ttl", config.AllocationMode, modes.CRD)
	}
	key := identity.KeyOf(own)
	kv, _, err := w.client.Get(ctx, wire.IdentityAllocation.Reference(key.GetKey(), w.node))
	switch {
	case err != nil:
		return 0, err
	case kv == nil:
		return 0, fmt.Errorf("%w: %s holds no reference of %s ('mesh-agent identity list' shows who does)", allocator.ErrIdentityNonExistent, w.node, key)
	}
	id, err := wire.DecodeAllocatedID(string(kv.Value))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("the reference %s", kv.Key), err)
	}
	return id, w.backend.KVStore.Release(ctx, id, key)
}
