package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
)

// The operations on a cluster's server. They affect all clusters that are cached in the same
// etcd. Readers always find the current server at the same endpoint.

// up refuses operations that need a running server.
func (r *Running) up() error {
	if r.etcd.server == nil {
		return refuse("the server of cluster %s is killed: start it first", r.c.Name)
	}
	return nil
}

// Kill ends the server as kill -9 would: connections are reset, the port is closed, the data stay. The cluster does not
// change until Start.
func (r *Running) Kill() error {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := r.up(); err != nil {
		return refuse("the server of cluster %s is killed already", r.c.Name)
	}
	e.kill()
	return nil
}

func (e *etcd) kill() {
	e.gate.Shut()
	e.end()
	e.thawAt = time.Time{}
}

// Start runs a killed server again, on its data.
func (r *Running) Start(ctx context.Context) error {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return refuse("the server of cluster %s runs already", r.c.Name)
	}
	return e.again(ctx)
}

// Restart kills the server, if it runs, and starts it on its data.
func (r *Running) Restart(ctx context.Context) error {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kill()
	return e.again(ctx)
}

func (e *etcd) again(ctx context.Context) error {
	s, err := etcdserver.Start(e.config)
	if err != nil {
		return err
	}
	return e.adopt(ctx, s)
}

// Freeze makes the server keep its connections without an answer, until Thaw or, when d is positive, for that long,
// while Run runs. New connections are accepted, too. Readers see the simulator's writes of that time after the thaw.
func (r *Running) Freeze(d time.Duration) error {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case d < 0:
		return misuse("freeze for %s: must not be negative", d)
	case e.server == nil:
		return r.up()
	case e.gate.Frozen() && d == 0 && e.thawAt.IsZero():
		return refuse("the server of cluster %s is frozen already", r.c.Name)
	}
	e.gate.Freeze()
	e.thawAt = time.Time{}
	if d > 0 {
		e.thawAt = time.Now().Add(d)
	}
	e.changed.Notify()
	return nil
}

// Thaw lets a frozen server continue.
func (r *Running) Thaw() error {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.gate.Frozen() {
		return refuse("the server of cluster %s is not frozen", r.c.Name)
	}
	e.gate.Thaw()
	e.thawAt = time.Time{}
	return nil
}

// Replace replaces the server's etcd by another one: another etcd cluster ID, other revisions, and the same contents,
// complete before the first reader sees it.
func (r *Running) Replace(ctx context.Context) error {
	return r.swap(ctx, "", (*etcd).refill)
}

// ReplaceEmpty replaces the server's etcd by another one without contents. Nothing is written to it automatically until
// Mend.
func (r *Running) ReplaceEmpty(ctx context.Context) error {
	return r.swap(ctx, "", (*etcd).lose)
}

// Wipe deletes all contents, but the etcd cluster ID stays and revisions start again, as if the server's disk was
// replaced and its configuration was not. Nothing is written to it automatically until Mend.
func (r *Running) Wipe(ctx context.Context) error {
	r.etcd.mu.Lock()
	token := r.etcd.config.Token
	r.etcd.mu.Unlock()
	return r.swap(ctx, token, (*etcd).lose)
}

// swap starts a server without data, prepares it, and replaces the present one with it. After an error nothing has
// changed.
func (r *Running) swap(ctx context.Context, token string, prepare func(*etcd, context.Context, *etcdserver.Server) error) (err error) {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	lease := e.heartbeatLease
	var before []written
	for _, r := range e.clusters {
		before = append(before, r.written)
	}
	old := e.config.DataDir
	cfg := e.fresh(token)
	s, err := etcdserver.Start(cfg)
	if err != nil {
		return err
	}
	if err = prepare(e, ctx, s); err == nil {
		err = e.enableAuth(ctx, s)
	}
	if err != nil {
		s.Close()
	} else {
		err = e.adopt(ctx, s) // closes it if it fails
	}
	if err != nil {
		e.heartbeatLease = lease
		for i, r := range e.clusters {
			r.written = before[i]
		}
		return errors.Join(err, os.RemoveAll(cfg.DataDir))
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("remove the data of the server before: %w", err)
	}
	return nil
}

// refill writes everything into another server.
func (e *etcd) refill(ctx context.Context, s *etcdserver.Server) error {
	kv := s.Local()
	for range 10 + e.servers { // so that revisions differ from those of the earlier server
		if _, err := kv.Put(ctx, wire.InitLockPath, ""); err != nil {
			return fmt.Errorf("write to the new server: %w", err)
		}
	}
	if _, err := kv.Delete(ctx, wire.InitLockPath); err != nil {
		return fmt.Errorf("write to the new server: %w", err)
	}
	e.heartbeatLease = 0
	if e.heartbeats && !e.lost() {
		if err := e.writeHeartbeat(ctx, kv); err != nil {
			return err
		}
	}
	for _, r := range e.clusters {
		r.leases = nil
		if _, err := r.fill(ctx, kv); err != nil {
			return err
		}
	}
	return nil
}

// lose writes nothing into another server.
func (e *etcd) lose(context.Context, *etcdserver.Server) error {
	e.heartbeatLease = 0
	for _, r := range e.clusters {
		r.written = written{empty: true, overrides: map[string]override{}}
	}
	return nil
}

// Compact drops the history, so that watches and lists at earlier revisions fail,
// and returns the revision.
func (r *Running) Compact(ctx context.Context) (int64, error) {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := r.up(); err != nil {
		return 0, err
	}
	return etcdserver.Compact(ctx, e.client)
}

// SetHeartbeat stops the heartbeat, whose key stays until its lease ends, or writes it at once and starts it again.
func (r *Running) SetHeartbeat(ctx context.Context, on bool) error {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heartbeats == on {
		return refuse("the heartbeat of cluster %s is %s already", r.c.Name, map[bool]string{true: "on", false: "off"}[on])
	}
	if on && e.server != nil && !e.lost() {
		if err := e.writeHeartbeat(ctx, e.client); err != nil {
			return err
		}
	}
	e.heartbeats = on
	return nil
}
