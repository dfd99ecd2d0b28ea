package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

type collection struct {
	DryRun     bool         `json:"dryRun"`
	Identities []unusedItem `json:"identities"` // unused in the first round
	Deleted    int          `json:"deleted"`
	Alive      int          `json:"alive"`     // identities that remain, also unused ones
	LocksGone  int          `json:"locksGone"` // locks whose holder of the first round is gone
}

type unusedItem struct {
	ID       uint64            `json:"id"`
	Labels   map[string]string `json:"labels"`
	Revision int64             `json:"revision"`
	Reason   string            `json:"reason"`
}

type gcSettings struct {
	dryRun    bool
	between   time.Duration
	perMinute int
}

func identityGCCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var s gcSettings
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete unused identities and abandoned locks",
		Long: "Delete the unused identities and the abandoned locks of the cluster, in two rounds. The first round finds the\n" +
			"identities that no node uses. The second round deletes those of them that are still unused and that no client\n" +
			"touched between the rounds. A lock is deleted if it has the same holder in both rounds: set --between to more than\n" +
			"the longest time that a client holds a lock.\n\n" +
			"With --dry-run the command writes nothing. It shows the result of the first round, which the second round would\n" +
			"delete.",
		Example: "  mesh-agent identity gc --kvstore-opt etcd.address=http://127.0.0.1:2379 --cluster-name east --cluster-id 1 --dry-run",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.between <= 0 || s.perMinute < 0 {
				return exit.Usagef("--between must be above zero, and --per-minute not below it")
			}
			if err := local(k); err != nil {
				return err
			}
			t, err := target.Choose(c, cmd, k)
			if err != nil {
				return err
			}
			if m := t.Settings.AllocationMode; m.InKubernetes() {
				return exit.Usagef("--%s=%s: this command collects in the kvstore alone; 'mesh-agent operate' in that mode collects on both sides", config.AllocationMode, m)
			}
			if err := k.Settings.Check(config.AllocationMode); err != nil {
				return err
			}
			if sync := t.Settings.KVStore.PeriodicSync; s.between < sync && !s.dryRun {
				return exit.Usagef("--between: %s is shorter than --kvstore-periodic-sync=%s: a node whose reference was lost may not have put it back by then",
					s.between, sync)
			}
			i, err := open(cmd.Context(), t, k)
			if err != nil {
				return err
			}
			defer i.close()
			done, err := i.collect(cmd.Context(), s, cmd.ErrOrStderr())
			if done != nil {
				if err := c.Answer(cmd, format, done, done.page); err != nil {
					return err
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "show what the command would delete, and why, and delete nothing")
	cmd.Flags().DurationVar(&s.between, "between", 10*time.Minute, "time between the two rounds, not below --kvstore-periodic-sync of the agents")
	cmd.Flags().IntVar(&s.perMinute, "per-minute", 2500, "maximum number of deletions per minute; 0 is no limit")
	return command.WithOutput(cmd, format)
}

// local refuses a remote cluster: its kvstore is never written to.
func local(k *target.Choice) error {
	if k.Cluster != "" {
		return exit.Usagef("--cluster %s: the kvstore of a remote cluster is only read; leave it out to write to the own one", k.Cluster)
	}
	return nil
}

func (i *identities) collect(ctx context.Context, s gcSettings, log io.Writer) (*collection, error) {
	contents, err := identity.Read(ctx, i.client, i.place, identity.Addresses)
	if err != nil {
		return nil, err
	}
	done := &collection{DryRun: s.dryRun, Identities: []unusedItem{}}
	if err := contents.Collectable(i.cluster); err != nil {
		return nil, fmt.Errorf("nothing was deleted: %w", err)
	}
	first, last := i.cluster.Range()
	unused, texts := contents.Unused(i.cluster), make(map[uint64]string)
	for _, m := range slices.Concat(contents.Mappings, contents.Unreadable) {
		if texts[m.ID] = m.Key; uint64(first) <= m.ID && m.ID <= uint64(last) {
			done.Alive++
		}
	}
	for _, id := range unused.IDs() {
		done.Identities = append(done.Identities, unusedItem{
			id, wire.ParseLabels(texts[id]).Map(), unused[id],
			fmt.Sprintf("no node holds a reference, and it was not written since revision %d", unused[id]),
		})
	}
	if s.dryRun {
		return done, nil
	}
	return done, i.collectTwice(ctx, s, log, done)
}

// collectTwice runs both rounds. Each deletion is logged at once.
func (i *identities) collectTwice(ctx context.Context, s gcSettings, log io.Writer, done *collection) error {
	b, err := kvbackend.New(i.client, kvbackend.Config{
		Paths: i.place.Paths, Node: "gc", Keys: identity.Key{}, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	limiter := rate.NewLimiter(rate.Inf, 1)
	if s.perMinute > 0 {
		limiter = rate.NewLimiter(rate.Limit(float64(s.perMinute)/60), s.perMinute)
	}
	first, last := i.cluster.Range()
	stale, stats, err := b.RunGC(ctx, limiter, nil, uint64(first), uint64(last))
	if err != nil {
		return err
	}
	locks, err := b.RunLocksGC(ctx, nil)
	if err != nil {
		return err
	}
	if done.Alive = stats.Alive; len(stale) == 0 && len(locks) == 0 {
		return nil
	}
	fmt.Fprintf(log, "%s and %s; looking again in %s.\n",
		printer.Counted(len(stale), "unused identity", "unused identities"), printer.Count(len(locks), "held lock"), s.between)
	if err := waiting.Sleep(ctx, s.between); err != nil {
		return err
	}
	_, stats, err = b.RunGC(ctx, limiter, stale, uint64(first), uint64(last))
	done.Alive, done.Deleted = stats.Alive, stats.Deleted
	if err != nil {
		return err
	}
	left, err := b.RunLocksGC(ctx, locks)
	for path := range locks {
		if left[path] != locks[path] {
			done.LocksGone++
		}
	}
	return err
}

func (done *collection) page(p *printer.Page) {
	if done.DryRun {
		p.Line("%s of %d would be deleted, if they are still unused in the next round.",
			printer.Counted(len(done.Identities), "identity", "identities"), done.Alive)
		p.Blank()
		printer.Rows(p, printer.Table[unusedItem]{
			{Title: "ID", Right: true, Text: func(u unusedItem) string { return strconv.FormatUint(u.ID, 10) }},
			{Title: "WHY", Text: func(u unusedItem) string { return u.Reason }},
			{Title: "LABELS", Text: func(u unusedItem) string { return strings.Join(printer.SortedLabels(u.Labels), " ") }},
		}, done.Identities)
		return
	}
	p.Line("%s deleted, %d left; %s gone.", printer.Counted(done.Deleted, "identity", "identities"), done.Alive, printer.Count(done.LocksGone, "lock"))
}

func identityDeleteCommand(c *command.Env, k *target.Choice) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete identities by their numbers, at once",
		Long: "Delete the identities with these numbers at once, without the two rounds of 'gc'. The command does not delete an\n" +
			"identity that a node references, or that published addresses have. If the mapping of one of these numbers is invalid, it deletes the mapping too.",
		Example: "  mesh-agent identity delete 65540 --kvstore-opt etcd.address=http://127.0.0.1:2379 --cluster-name east --cluster-id 1",
		Args:    command.Arguments(1, math.MaxInt, "one ID or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return writing(c, k, func(cmd *cobra.Command, _ []string, i *identities) error {
				log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
				return i.delete(cmd.Context(), ids, log, func(text string) { command.Note(cmd.ErrOrStderr(), text) })
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
