package kvstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// onePrefix wants one PREFIX, which is not empty.
func onePrefix(cmd *cobra.Command, args []string) error {
	if err := command.Arguments(1, 1, "one PREFIX")(cmd, args); err != nil {
		return err
	}
	if args[0] == "" {
		return exit.Usagef("the PREFIX is empty: 'cilium/' is where the keys are")
	}
	return nil
}

// open connects and finds out which keys the user means by given, with a note when that
// is taken as something else.
func open(t *target.Target, ctx context.Context, given string, notes io.Writer) (*etcd.Session, string, error) {
	client, err := t.Connect(ctx)
	if err != nil {
		return nil, "", err
	}
	selected, note, err := selection(ctx, client, given)
	if err != nil {
		client.Close()
		return nil, "", err
	}
	command.Tell(notes, note)
	return client, selected, nil
}

// errEnough ends a list that has brought what was wanted.
var errEnough = errors.New("enough")

// below reports whether there are keys below a prefix.
func below(ctx context.Context, client kvstore.Client, prefix string) (bool, error) {
	_, err := client.List(ctx, prefix, func(kvstore.Page) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// selection turns what a user gives into what the kvstore is asked for: what ends in a slash
// is a prefix, anything else one whole key, unless there is no such key but others below it.
// Then note says so.
func selection(ctx context.Context, client kvstore.Client, given string) (selected, note string, err error) {
	prefix := given + "/"
	if strings.HasSuffix(given, "/") {
		_, err := below(ctx, client, given) // a user who may not read it is to know at once
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
