package program

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// Request is a request to a running mesh: one of the Commands.
type Request struct {
	Command string              `json:"command"`
	Args    []string            `json:"args"`
	Flags   map[string][]string `json:"flags,omitempty"` // by name; a switch has one empty value
}

// Answer is the result of a request.
type Answer struct {
	// Message is one line for a person; empty when the clusters are the answer.
	Message string `json:"message,omitempty"`
	// Keys are the keys that were written or deleted by name.
	Keys []string `json:"keys,omitempty"`
	// Clusters are the clusters of the request, in their present state.
	Clusters []sim.State `json:"clusters"`
}

// Command is one of the requests to a running mesh.
type Command struct {
	Name string
	// Args are the names of the arguments. The first is argCluster, if there are any.
	Args  []string
	Flags []Flag
	Help  string
	run   func(context.Context, call) (Answer, error)
}

// Flag is an option of a command.
type Flag struct {
	Name string
	// Switch: the flag takes no value. Repeated: it may be given several times.
	Switch   bool
	Repeated bool
	Help     string // with the name of the value in backquotes
}

// The kinds of arguments. A value may be "-" on the command line, for standard input.
const (
	argCluster = "CLUSTER"
	ArgValue   = "VALUE"
)

// call is a well-formed request.
type call struct {
	mesh    mesh
	cluster *sim.Running // nil without an argument
	name    string       // the cluster's
	args    []string     // after the cluster
	flags   map[string][]string
}

// has reports whether a switch is set.
func (c call) has(flag string) bool { return len(c.flags[flag]) > 0 }

// value is the value of a flag, or empty.
func (c call) value(flag string) string {
	if v := c.flags[flag]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// done is the answer to most requests.
func done(format string, args ...any) Answer { return Answer{Message: fmt.Sprintf(format, args...)} }

// changed is the answer to a request that writes or deletes one key.
func changed(key, format string, args ...any) Answer {
	return Answer{Message: fmt.Sprintf(format, args...), Keys: []string{key}}
}

// misuse returns the error for a request that is always invalid.
func misuse(format string, args ...any) error {
	return &sim.RefusedError{Usage: true, Reason: fmt.Sprintf(format, args...)}
}

// Commands returns all requests to a running mesh.
func Commands() []Command {
	cluster := []string{argCluster}
	return []Command{
		{Name: "list", Help: "the clusters and their servers", run: runList},
		{Name: "kill", Args: cluster, Help: "kill the server, as kill -9 does; its data stay", run: simple(
			func(r *sim.Running, _ context.Context) error { return r.Kill() }, "killed")},
		{Name: "start", Args: cluster, Help: "start a killed server on its data", run: simple((*sim.Running).Start, "started")},
		{Name: "restart", Args: cluster, Help: "kill and start", run: simple((*sim.Running).Restart, "restarted")},
		{Name: "freeze", Args: cluster, Help: "the server keeps its connections, but does not answer", Flags: []Flag{
			{Name: "for", Help: "end the freeze after this `DURATION`, such as 30s"},
		}, run: runFreeze},
		{Name: "thaw", Args: cluster, Help: "end the freeze of a server", run: simple(
			func(r *sim.Running, _ context.Context) error { return r.Thaw() }, "thawed")},
		{Name: "replace", Args: cluster, Help: "start another etcd at the same endpoint, with another etcd cluster ID, other revisions and the same data", Flags: []Flag{
			{Name: "empty", Switch: true, Help: "without the data; repair it with mend"},
		}, run: runReplace},
		{Name: "wipe", Args: cluster, Help: "replace the etcd by an empty one with the same etcd cluster ID; mend repairs it", run: simple((*sim.Running).Wipe, "wiped")},
		{Name: "compact", Args: cluster, Help: "compact the history", run: runCompact},
		{Name: "certificate", Args: []string{argCluster, "DURATION"}, Help: "issue a client certificate for the agent that is valid for this DURATION", run: runCertificate},
		{Name: "heartbeat", Args: []string{argCluster, "on|off"}, Help: "write the heartbeat, or stop it", run: runHeartbeat},
		{Name: "put", Args: []string{argCluster, "KEY", ArgValue}, Help: "write a key; - reads the value from standard input", run: runPut},
		{Name: "delete", Args: []string{argCluster, "KEY"}, Help: "delete a key", run: runDelete},
		{Name: "malform", Args: []string{argCluster, strings.Join(sim.Kinds(), "|")}, Help: "write a malformed value over a key of this kind", run: runMalform},
		{Name: "config", Args: cluster, Help: "change the cluster configuration", Flags: []Flag{
			{Name: "id", Help: "another cluster `ID`, also in all entries"},
			{Name: "capability", Repeated: true, Help: "`NAME=VALUE` of a capability, such as syncedCanaries=false (repeatable)"},
			{Name: "delete", Switch: true, Help: "delete the configuration"},
		}, run: runConfig},
		{Name: "claim", Args: []string{argCluster, "ADDRESS"}, Help: "also claim the address of another cluster's pod", run: runClaim},
		{Name: "churn", Args: []string{argCluster, "RATE"}, Help: "set how many keys change per second", run: runChurn},
		{Name: "mend", Args: cluster, Help: "repair the contents: write all correct values", run: runMend},
		{Name: "remove", Args: cluster, Help: "remove the client file from the mesh directory", run: runRemove},
		{Name: "add", Args: cluster, Help: "put the client file back", run: runAdd},
	}
}

// simple is a command on a cluster without a result.
func simple(f func(*sim.Running, context.Context) error, message string) func(context.Context, call) (Answer, error) {
	return func(ctx context.Context, c call) (Answer, error) {
		return done("%s: %s", c.name, message), f(c.cluster, ctx)
	}
}

func runList(context.Context, call) (Answer, error) { return Answer{}, nil }

func runFreeze(_ context.Context, c call) (Answer, error) {
	text := c.value("for")
	if text == "" {
		return done("%s: frozen", c.name), c.cluster.Freeze(0)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return Answer{}, misuse("--for %q: must be a duration above zero, such as 30s", text)
	}
	return done("%s: frozen for %s", c.name, d), c.cluster.Freeze(d)
}

func runReplace(ctx context.Context, c call) (Answer, error) {
	if c.has("empty") {
		return done("%s: replaced by an empty etcd", c.name), c.cluster.ReplaceEmpty(ctx)
	}
	return done("%s: replaced by another etcd with the same data", c.name), c.cluster.Replace(ctx)
}

func runCompact(ctx context.Context, c call) (Answer, error) {
	rev, err := c.cluster.Compact(ctx)
	return done("%s: compacted at revision %d", c.name, rev), err
}

func runHeartbeat(ctx context.Context, c call) (Answer, error) {
	if c.args[0] != "on" && c.args[0] != "off" {
		return Answer{}, misuse("heartbeat %q: must be on or off", c.args[0])
	}
	return done("%s: heartbeat %s", c.name, c.args[0]), c.cluster.SetHeartbeat(ctx, c.args[0] == "on")
}

func runPut(ctx context.Context, c call) (Answer, error) {
	return changed(c.args[0], "%s: wrote %s", c.name, c.args[0]), c.cluster.Put(ctx, c.args[0], []byte(c.args[1]))
}

func runDelete(ctx context.Context, c call) (Answer, error) {
	return changed(c.args[0], "%s: deleted %s", c.name, c.args[0]), c.cluster.Delete(ctx, c.args[0])
}

func runMalform(ctx context.Context, c call) (Answer, error) {
	key, err := c.cluster.Malform(ctx, c.args[0])
	return changed(key, "%s: malformed %s", c.name, key), err
}

func runMend(ctx context.Context, c call) (Answer, error) {
	n, err := c.cluster.Mend(ctx)
	return done("%s: mended, %d keys written or deleted", c.name, n), err
}

func runConfig(ctx context.Context, c call) (Answer, error) {
	change := sim.ConfigChange{Delete: c.has("delete"), Capabilities: map[string]string{}}
	if text := c.value("id"); text != "" {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil || id == 0 {
			return Answer{}, misuse("--id %q: must be a number above zero", text)
		}
		change.ID = uint32(id)
	}
	for _, text := range c.flags["capability"] {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return Answer{}, misuse("--capability %q: must be NAME=VALUE, such as syncedCanaries=false", text)
		}
		change.Capabilities[name] = value
	}
	return done("%s: configuration changed", c.name), c.cluster.Configure(ctx, change)
}

func runClaim(ctx context.Context, c call) (Answer, error) {
	addr, err := netip.ParseAddr(c.args[0])
	if err != nil {
		return Answer{}, misuse("%q is no IP address", c.args[0])
	}
	key, other, err := c.mesh.Claim(ctx, c.cluster, addr)
	return changed(key, "%s: claims %s, which %s has", c.name, addr, other), err
}

func runChurn(_ context.Context, c call) (Answer, error) {
	rate, err := strconv.ParseFloat(c.args[0], 64)
	if err != nil {
		return Answer{}, misuse("churn of %q: must be a number of keys per second", c.args[0])
	}
	return done("%s: %g keys change per second", c.name, rate), c.cluster.SetChurn(rate)
}

func runCertificate(_ context.Context, c call) (Answer, error) {
	d, err := time.ParseDuration(c.args[0])
	if err != nil {
		return Answer{}, misuse("certificate for %q: must be a duration, such as 30s", c.args[0])
	}
	return done("%s: a certificate that is valid for %s", c.name, d), c.mesh.Certify(c.cluster, d)
}

func runRemove(_ context.Context, c call) (Answer, error) {
	return done("%s: removed %s", c.name, c.mesh.ClientFile(c.cluster)), c.mesh.Remove(c.cluster)
}

func runAdd(_ context.Context, c call) (Answer, error) {
	return done("%s: wrote %s", c.name, c.mesh.ClientFile(c.cluster)), c.mesh.Add(c.cluster)
}

// do executes a request. A *sim.RefusedError means that it was not executed, and has the reason.
func (m mesh) do(ctx context.Context, q Request) (Answer, error) {
	all := Commands()
	i := slices.IndexFunc(all, func(c Command) bool { return c.Name == q.Command })
	if i < 0 {
		names := make([]string, len(all))
		for i, c := range all {
			names[i] = c.Name
		}
		return Answer{}, misuse("no command is called %q: there are %s", q.Command, strings.Join(names, ", "))
	}
	if err := all[i].check(q); err != nil {
		return Answer{}, err
	}
	c := call{mesh: m, flags: q.Flags}
	about := m.Clusters()
	if len(q.Args) > 0 {
		var err error
		if c.cluster, err = m.Cluster(q.Args[0]); err != nil {
			return Answer{}, err
		}
		c.name, c.args, about = q.Args[0], q.Args[1:], []*sim.Running{c.cluster}
	}
	a, err := all[i].run(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	a.Clusters, err = m.State(ctx, about...)
	return a, err
}

// check reports whether the numbers of arguments and flags are right.
func (c Command) check(q Request) error {
	if len(q.Args) != len(c.Args) {
		return misuse("%s takes %d arguments, not %d: %s", c.Name, len(c.Args), len(q.Args), c.Usage())
	}
	for name, values := range q.Flags {
		i := slices.IndexFunc(c.Flags, func(f Flag) bool { return f.Name == name })
		switch {
		case i < 0:
			return misuse("%s has no flag --%s: %s", c.Name, name, c.Usage())
		case len(values) == 0, len(values) > 1 && !c.Flags[i].Repeated:
			return misuse("--%s of %s must be given once", name, c.Name)
		}
	}
	return nil
}

// Usage is the syntax of the command.
func (c Command) Usage() string { return strings.Join(append([]string{c.Name}, c.Args...), " ") }
