package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// kvChoice says which kvstore is asked.
type kvChoice struct {
	settings *settings
	cluster  string // empty: the local kvstore
	timeout  time.Duration
}

func (c *cli) kvstoreCommand() *cobra.Command {
	k := &kvChoice{settings: newSettings()}
	cmd := group("kvstore", "Read a cluster's kvstore, without a running agent",
		c.kvGetCommand(k), c.kvListCommand(k), c.kvWatchCommand(k), c.kvStatusCommand(k))
	cmd.Long = "Read a cluster's kvstore, without a running agent: that of --cluster, by its client file in the mesh directory,\n" +
		"or else the local one, by --kvstore-opt. Nothing is ever written.\n\n" +
		"Exit code 0: there is an answer. 1: it is not a good one, such as a key that does not exist.\n" +
		"2: wrong usage, or the kvstore does not answer."
	f := cmd.PersistentFlags()
	k.settings.register(f, "clustermesh-config", "kvstore-opt")
	f.StringVar(&k.cluster, "cluster", "", "ask the kvstore of this remote cluster")
	f.DurationVar(&k.timeout, "timeout", 10*time.Second, "how long to wait for each endpoint, and for each answer")
	_ = cmd.RegisterFlagCompletionFunc("cluster", c.completeClientFile(k.settings)) // the flag is there
	return cmd
}

// kvTarget is a kvstore that can be asked.
type kvTarget struct {
	name    string // for people
	settled Config
	cfg     *clientfile.Config
	opts    etcd.Options
}

// target finds out which kvstore is meant, and how to connect to it.
func (c *cli) target(cmd *cobra.Command, k *kvChoice) (*kvTarget, error) {
	t, err := c.anyTarget(cmd, k)
	if err == nil && t.cfg == nil {
		err = usagef("which kvstore? Give --cluster NAME for that of a remote cluster, " +
			"or --kvstore-opt etcd.config=FILE or etcd.address=URL for the local one")
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// anyTarget is [cli.target] for who may do without a kvstore: then it has no
// configuration.
func (c *cli) anyTarget(cmd *cobra.Command, k *kvChoice) (*kvTarget, error) {
	settled, err := c.settle(cmd, k.settings)
	if err != nil {
		return nil, err
	}
	if k.timeout <= 0 {
		return nil, usagef("--timeout: %s is not above zero", k.timeout)
	}
	t := &kvTarget{name: "the local kvstore", settled: settled}
	if t.opts, err = settled.kvstoreOptions(); err != nil {
		return nil, usagef("%s", oneLine(errors.New(k.settings.explain(&settingError{[]string{"kvstore-opt"}, err}))))
	}
	t.opts.Timings.Connect, t.opts.Timings.Read, t.opts.Timings.Probe = k.timeout, k.timeout, k.timeout
	if k.cluster != "" {
		t.name = "cluster " + k.cluster
		t.cfg, err = clusterConfig(settled.ClustermeshConfig, k.cluster)
		return t, err
	}
	if t.cfg, err = t.opts.Config(); err != nil {
		return nil, usagef("%s", oneLine(err))
	}
	return t, nil
}

// clusterConfig reads the client file of a cluster in the mesh directory.
func clusterConfig(dir, cluster string) (*clientfile.Config, error) {
	if err := wire.ValidateClusterName(cluster); err != nil {
		return nil, usagef("--cluster: %q %w", cluster, err)
	}
	files, err := clientFiles(dir)
	if err != nil {
		return nil, err
	}
	file, ok := files[cluster]
	if !ok {
		return nil, noClientFile(dir, cluster, files)
	}
	cfg, err := clientfile.Load(file.Path)
	if err != nil {
		return nil, usagef("%s; 'mesh-agent config check' says more", oneLine(err))
	}
	return cfg, nil
}

// clientFiles are those of the mesh directory, by cluster.
func clientFiles(dir string) (map[string]clustermesh.File, error) {
	files, err := clustermesh.Files(dir)
	if err != nil {
		return nil, usagef("%w; --clustermesh-config says where it is", err)
	}
	return files, nil
}

// noClientFile says that a cluster has none, and which have.
func noClientFile(dir, cluster string, files map[string]clustermesh.File) error {
	there := "none at all"
	if len(files) > 0 {
		there = some(slices.Sorted(maps.Keys(files)), 10)
	}
	return fmt.Errorf("there is no client file of the cluster %q in %s; there are: %s", cluster, dir, there)
}

// connect opens a session with the first endpoint that answers. The error tells
// of every endpoint.
func (t *kvTarget) connect(ctx context.Context) (*etcd.Session, error) {
	var failed kvErrors
	for attempt := range t.cfg.Endpoints {
		client, err := etcd.Connect(ctx, t.cfg, attempt, t.opts)
		if err == nil {
			return client, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// onePrefix wants one PREFIX, which is not empty.
func onePrefix(cmd *cobra.Command, args []string) error {
	if err := arguments(1, 1, "one PREFIX")(cmd, args); err != nil {
		return err
	}
	if args[0] == "" {
		return usagef("the PREFIX is empty: 'cilium/' is where the keys are")
	}
	return nil
}

// open connects and finds out what is meant by what a person gave, who is told
// when it is taken as something else.
func (t *kvTarget) open(ctx context.Context, given string, notes io.Writer) (*etcd.Session, string, error) {
	client, err := t.connect(ctx)
	if err != nil {
		return nil, "", err
	}
	selected, note, err := selection(ctx, client, given)
	if err != nil {
		client.Close()
		return nil, "", err
	}
	tell(notes, note)
	return client, selected, nil
}

// kvErrors is like [errors.Join], on one line.
type kvErrors []error

func (e kvErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = oneLine(err)
	}
	return strings.Join(texts, "; ")
}

func (e kvErrors) Unwrap() []error { return e }

// errEnough ends a list that has brought what was wanted.
var errEnough = errors.New("enough")

// below tells whether there are keys below a prefix.
func below(ctx context.Context, client kvstore.Client, prefix string) (bool, error) {
	_, err := client.List(ctx, prefix, func(kvstore.Page) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// selection turns what a person gives into what the kvstore is asked for: what
// ends in a slash is a prefix, anything else one whole key, unless there is no
// such key but others below it. Then note says so.
func selection(ctx context.Context, client kvstore.Client, given string) (selected, note string, err error) {
	prefix := given + "/"
	if strings.HasSuffix(given, "/") {
		_, err := below(ctx, client, given) // a user who may not read it shall know at once
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
