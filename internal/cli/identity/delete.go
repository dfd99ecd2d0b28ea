package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/identity"
)

func identityDeleteCommand(c *command.Env, k *target.Choice) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete identities that no node uses, at once",
		Long: "Delete the identities with these numbers at once, without the two rounds of 'gc'. One that a node holds a reference\n" +
			"of, or that addresses are published with, is not deleted. Mappings that cannot be read are deleted as well.",
		Example: "  mesh-agent identity delete 65540 --kvstore-opt etcd.address=http://127.0.0.1:2379 --cluster-name east --cluster-id 1",
		Args:    command.Arguments(1, math.MaxInt, "one ID or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return writing(c, k, func(cmd *cobra.Command, _ []string, i *identities) error {
				log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
				return i.delete(cmd.Context(), ids, log, func(text string) { command.Tell(cmd.ErrOrStderr(), text) })
			})(cmd, args)
		},
	}
}

func parseIDs(args []string) ([]uint64, error) {
	var ids []uint64
	for _, arg := range args {
		id, err := strconv.ParseUint(arg, 10, 32)
		if err != nil || id == allocator.NoID {
			return nil, exit.Usagef("%q is no number of an identity, such as 65540", arg)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (i *identities) delete(ctx context.Context, ids []uint64, log *slog.Logger, done func(string)) error {
	b, err := kvbackend.New(i.client, kvbackend.Config{Paths: i.place.Paths, Node: "delete", Keys: identity.Key{}, Log: log})
	if err != nil {
		return err
	}
	a, err := allocator.NewAllocatorForGC(b, allocator.WithCluster(i.cluster.Layout, i.cluster.ID))
	if err != nil {
		return err
	}
	contents, err := identity.Read(ctx, i.client, i.place, identity.Addresses)
	if err != nil {
		return err
	}
	published := contents.Published()
	var errs []error
	for _, id := range ids {
		if n := published[id]; n > 0 {
			errs = append(errs, fmt.Errorf("identity %d is not deleted: %s published with it", id, printer.Counted(n, "address is", "addresses are")))
			continue
		}
		deleted, err := a.DeleteID(ctx, id)
		switch {
		case errors.Is(err, allocator.ErrIDInUse):
			err = fmt.Errorf("identity %d is not deleted: %w ('mesh-agent identity list' shows which)", id, allocator.ErrIDInUse)
		case err == nil && !deleted:
			err = fmt.Errorf("identity %d: %w", id, allocator.ErrIdentityNonExistent)
		case err == nil:
			done(fmt.Sprintf("Identity %d is deleted.", id))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
