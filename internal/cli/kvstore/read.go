package kvstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func kvGetCommand(c *command.Env, k *target.Choice) *cobra.Command {
	format := printer.NewFormat(command.Plain, printer.JSON)
	return command.WithOutput(&cobra.Command{
		Use:   "get KEY",
		Short: "Show the value of one key",
		Long: "Show the value of one key, from a linearizable read. If the value is not printable text, the command decodes it\n" +
			"(endpoint slices), or shows it in quotes or in base64.",
		Example: "  mesh-agent kvstore get --cluster c2 cilium/cluster-config/c2\n" +
			"  mesh-agent kvstore get --kvstore-opt etcd.address=http://127.0.0.1:2379 cilium/.heartbeat -o json",
		Args: command.Arguments(1, 1, "one KEY"),
		RunE: target.Asking(c, k, func(cmd *cobra.Command, args []string, t *target.Target) error {
			t.Opts.PageLimit = 1
			client, err := t.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer client.Close()
			kv, _, err := client.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if kv == nil {
				return absent(t, cmd.Context(), client, args[0])
			}
			shown := show(*kv).withValue(args[0], kv.Value)
			if format.Structured() {
				return format.Object(cmd.OutOrStdout(), shown)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), shown.text())
			return err
		}),
	}, format)
}

// absent returns the error that a key does not exist, and whether there are keys below it.
func absent(t *target.Target, ctx context.Context, client kvstore.Client, key string) error {
	prefix := strings.TrimSuffix(key, "/") + "/"
	if found, err := below(ctx, client, prefix); err == nil && found {
		return fmt.Errorf("%s has no key %q, but there are keys below it: 'mesh-agent kvstore list %s'", t.Name, key, prefix)
	}
	return fmt.Errorf("%s has no key %q", t.Name, key)
}

func kvListCommand(c *command.Env, k *target.Choice) *cobra.Command {
	var (
		l      kvList
		format = printer.NewFormat(command.Plain, printer.JSON)
	)
	cmd := &cobra.Command{
		Use:   "list PREFIX",
		Short: "List keys and values, in the order of the keys",
		Long: "List keys and values in the order of the keys, all at one revision. A PREFIX that ends in a slash selects each key\n" +
			"below it. Any other PREFIX is one key. If this key does not exist, the command lists the keys below it.\n\n" +
			"plain: a line for each key, with a tab before the value. json: an object on a line for each key.",
		Example: "  mesh-agent kvstore list --cluster c2 cilium/state/nodes/v1/\n  mesh-agent kvstore list --cluster c2 cilium/state/ --keys-only",
		Args:    onePrefix,
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.limit < 0 {
				return exit.Usagef("--limit: %d is negative", l.limit)
			}
			t, err := target.Choose(c, cmd, k)
			if err != nil {
				return err
			}
			if l.limit > 0 && (t.Opts.PageLimit == 0 || t.Opts.PageLimit > l.limit) {
				t.Opts.PageLimit = l.limit + 1
			}
			client, selected, err := open(t, cmd.Context(), args[0], cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer client.Close()
			l.out, l.json = cmd.OutOrStdout(), format.Structured()
			err = l.run(cmd.Context(), client, selected)
			command.Note(cmd.ErrOrStderr(), l.rest(selected, err))
			return err
		},
	}
	cmd.Flags().BoolVar(&l.keysOnly, "keys-only", false, "print no values")
	cmd.Flags().IntVar(&l.limit, "limit", 0, "maximum number of keys; 0 is no limit")
	return command.WithOutput(cmd, format)
}

// kvList prints keys as they are read, with one page in memory at a time.
type kvList struct {
	keysOnly, json bool
	limit          int // 0: none
	out            io.Writer

	n    int  // keys printed
	more bool // there are more
}

func (l *kvList) run(ctx context.Context, client kvstore.Client, selected string) error {
	var which []kvstore.ReadOption
	if isOneKey(selected) {
		which = append(which, kvstore.OneKey())
	}
	out := bufio.NewWriter(l.out)
	_, err := client.List(ctx, selected, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			if l.more = l.limit > 0 && l.n == l.limit; l.more {
				return errEnough
			}
			shown := show(kv)
			if !l.keysOnly {
				shown = shown.withValue(shown.Key, kv.Value)
			}
			if err := printKey(out, shown, l.json); err != nil {
				return err
			}
			l.n++
		}
		return out.Flush()
	}, which...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return errors.Join(err, out.Flush())
}

func printKey(out *bufio.Writer, s ShownKey, asJSON bool) error {
	if asJSON {
		return safetext.Encoder(out).Encode(s)
	}
	if s.Event != "" {
		fmt.Fprintf(out, "%s\t", s.Event)
	}
	_, err := out.WriteString(printer.Clean(s.Key))
	if s.Value != nil || s.Base64 != "" {
		_, err = fmt.Fprintf(out, "\t%s", s.text())
	}
	return errors.Join(err, out.WriteByte('\n'))
}

func (l *kvList) rest(selected string, err error) string {
	switch {
	case err != nil && l.n > 0:
		return "The list is not complete."
	case l.more:
		return fmt.Sprintf("There are more: the list ended after %s (--limit).", printer.Count(l.n, "key"))
	case err == nil && l.n == 0 && !isOneKey(selected):
		return fmt.Sprintf("No keys below %q.", selected)
	case err == nil && l.n == 0:
		return fmt.Sprintf("There is neither a key %q nor one below it.", selected)
	}
	return ""
}

// onePrefix requires one PREFIX, which must not be empty.
func onePrefix(cmd *cobra.Command, args []string) error {
	if err := command.Arguments(1, 1, "one PREFIX")(cmd, args); err != nil {
		return err
	}
	if args[0] == "" {
		return exit.Usagef("the PREFIX is empty: 'cilium/' is where the keys are")
	}
	return nil
}

// open connects and determines the keys that given selects. It writes a note when given is interpreted as a prefix.
func open(t *target.Target, ctx context.Context, given string, notes io.Writer) (kvstore.Session, string, error) {
	client, err := t.Connect(ctx)
	if err != nil {
		return nil, "", err
	}
	selected, note, err := selection(ctx, client, given)
	if err != nil {
		client.Close()
		return nil, "", err
	}
	command.Note(notes, note)
	return client, selected, nil
}

// errEnough ends a list early, when no more keys are needed.
var errEnough = errors.New("enough")

// below reports whether there are keys below a prefix.
func below(ctx context.Context, client kvstore.Client, prefix string) (bool, error) {
	_, err := client.List(ctx, prefix, func(kvstore.Page) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// isOneKey reports whether a result of selection is one whole key, and not a prefix.
func isOneKey(selected string) bool { return !strings.HasSuffix(selected, "/") }

// selection converts the user's argument to a key or a prefix. A text that ends in a slash is a prefix; any other
// text is one whole key. If this key does not exist, but keys below it do, it is taken as a prefix, and note explains
// that.
func selection(ctx context.Context, client kvstore.Client, given string) (selected, note string, err error) {
	prefix := given + "/"
	if strings.HasSuffix(given, "/") {
		_, err := below(ctx, client, given) // so that a user without the permission sees the error at once
		return given, "", err
	}
	kv, _, err := client.Get(ctx, given)
	if err != nil && !errors.Is(err, kvstore.ErrPermissionDenied) || kv != nil {
		return given, "", err
	}
	found, prefixErr := below(ctx, client, prefix)
	switch {
	case prefixErr != nil && err != nil:
		return given, "", err
	case found || err != nil:
		return prefix, fmt.Sprintf("There is no key %q; taken as the prefix %q.", given, prefix), nil
	}
	return given, "", nil
}
