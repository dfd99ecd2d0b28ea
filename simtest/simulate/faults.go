package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
)

// fault is one kind of fault of a cluster. Without an end it happens at once.
type fault struct {
	name       string
	lasts      time.Duration // on average
	begin, end func(*cluster, *rand.Rand)
	disturbs   disturbs
}

// disturbs is who notices a fault of a kvstore, or of the way to it.
type disturbs uint8

const (
	everybody   disturbs = iota
	onlyWriters          // reads continue
	onlyAgent            // that of the cluster ends, or starts again
	onlyOthers           // there is nothing to notice at the kvstores
)

// faults are all kinds.
func faults() []fault {
	all := []fault{
		{name: "compact", begin: func(c *cluster, _ *rand.Rand) { c.Store.Compact() }},
		{ // its history is dropped again and again, also that which a slow reader has not read yet
			name: "compacting", lasts: 3 * time.Minute,
			begin: func(c *cluster, _ *rand.Rand) {
				ctx, stop := context.WithCancel(c.w.ctx)
				c.stopCompacting = stop
				go func() {
					for waiting.Sleep(ctx, 500*time.Millisecond) == nil {
						c.Store.Compact()
					}
				}()
			},
			end: func(c *cluster, _ *rand.Rand) { c.stopCompacting() },
		},
		{name: "expire", begin: func(c *cluster, _ *rand.Rand) { c.Store.ExpireLeases() }},
		{ // another client deletes some keys of a family, perhaps with their history, before readers have seen that
			name: "deletion", begin: func(c *cluster, r *rand.Rand) {
				of := c.history.families[r.IntN(len(c.history.families))]
				names := slices.Sorted(maps.Keys(c.history.now(of)))
				for range min(len(names), 1+r.IntN(5)) {
					c.Store.Unset(of.prefix + names[r.IntN(len(names))])
				}
				if r.IntN(2) == 0 {
					c.Store.Compact()
				}
			},
		},
		{ // another client writes values that no writer would
			name: "garbage", begin: func(c *cluster, r *rand.Rand) {
				of := c.history.families[r.IntN(len(c.history.families))]
				if c.hasOthers(of) {
					return // what another client writes counts
				}
				now := c.history.now(of)
				names := slices.Sorted(maps.Keys(now))
				for range min(len(names), 1+r.IntN(5)) {
					name := names[r.IntN(len(names))]
					c.history.foreign.Store(true)
					c.Store.Set(of.prefix+spoiledName(r, name), string(spoiled(r, now[name], now[names[r.IntN(len(names))]])))
					c.history.foreign.Store(false)
				}
			},
		},
		{ // its agent ends, and another client writes more keys of a family than a cluster may have
			name: "flood", lasts: 3 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				c.stop()
				of := c.history.families[r.IntN(len(c.history.families))]
				if c.hasOthers(of) {
					return // the next agent would leave these keys
				}
				for i := range c.w.Budget.Share(of.r).Keys {
					c.Store.Set(fmt.Sprintf("%s0-%03d", of.prefix, i), "{}")
				}
				if r.IntN(2) == 0 { // readers list again, and these keys come first
					c.Store.Compact()
					c.Store.Break(nil)
				}
			},
			end: func(c *cluster, _ *rand.Rand) { c.start() },
		},
		{name: "replace", begin: func(c *cluster, _ *rand.Rand) { c.Store.Replace() }},
		{name: "wipe", begin: func(c *cluster, _ *rand.Rand) { c.Store.Wipe() }},
		{ // the kvstore is restored from a backup that was made at the begin
			name: "backup", lasts: 2 * time.Minute,
			begin: func(c *cluster, _ *rand.Rand) { c.backup = c.Store.Backup() },
			end:   func(c *cluster, _ *rand.Rand) { c.Store.Restore(c.backup); c.backup = nil },
		},
		{ // its agent ends, and another one starts
			name: "stop", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) { c.stop() },
			end:   func(c *cluster, _ *rand.Rand) { c.start() },
		},
		{ // the same without a last word: its agent can write nothing when it ends
			name: "crash", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) {
				own := c.routes[c.Own.ID-1]
				var before bool
				own.change(func() { before, own.away = own.away, true })
				c.stop()
				own.change(func() { own.away = before })
			},
			end: func(c *cluster, _ *rand.Rand) { c.start() },
		},
		{ // its agent, that runs or one that starts, ends at one of its next requests, and can write nothing more
			name: "kill", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, r *rand.Rand) {
				if r.IntN(2) == 0 {
					c.stop()
					c.start()
				}
				c.setTrap(1 + r.IntN(200))
			},
			end: func(c *cluster, _ *rand.Rand) {
				if c.setTrap(0); c.cancel != nil && !c.isRunning() {
					c.stop()
				}
				c.start()
			},
		},
		{ // its agent ends, and one starts that finds its states torn
			name: "torn", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) { c.stop() },
			end: func(c *cluster, r *rand.Rand) {
				c.stop() // the end of another fault may have started one
				for _, dir := range c.w.States(c.Cluster) {
					if !c.active["unsaved"] {
						c.note(tear(dir, r))
					}
				}
				c.start()
			},
		},
		{ // its agent starts again, and can neither read nor save its states; they may be lost
			name: "unsaved", lasts: 3 * time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) {
				for _, dir := range c.w.States(c.Cluster) {
					c.note(os.Rename(dir, dir+".away"))
					c.note(os.WriteFile(dir, nil, 0o600))
				}
				c.stop()
				c.start()
			},
			end: func(c *cluster, r *rand.Rand) {
				for _, dir := range c.w.States(c.Cluster) {
					c.note(os.Remove(dir))
					if r.IntN(2) == 0 {
						c.note(os.RemoveAll(dir + ".away"))
						c.note(os.Mkdir(dir, 0o700))
					} else {
						c.note(os.Rename(dir+".away", dir))
					}
				}
			},
		},
		{ // its agent loses the client file of another cluster
			name: "unlink", lasts: 4 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				c.remote.leaves()
				c.unlinked = c.file(r)
				_ = os.Remove(c.unlinked.path) // another fault may have removed it
			},
			end: func(c *cluster, _ *rand.Rand) {
				c.remote.leaves()
				c.note(agents.WriteClientFile(c.unlinked.path, c.Cluster, c.unlinked.to))
			},
		},
		{ // its agent starts again without the client file of a cluster that it has copied
			name: "leave", lasts: 4 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				other := c.w.clusters[(int(c.Own.ID)+r.IntN(len(c.w.clusters)-1))%len(c.w.clusters)]
				c.left = link{c.w.Originals(c.Cluster, other.Cluster), other.Cluster}
				c.remote.leaves()
				c.stop()
				_ = os.Remove(c.left.path) // another fault may have removed it
				c.start()
			},
			end: func(c *cluster, _ *rand.Rand) {
				c.remote.leaves()
				c.note(agents.WriteClientFile(c.left.path, c.Cluster, c.left.to))
			},
		},
		{ // a client file is half-written, and its agent may start again with it
			name: "half", lasts: 3 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				c.half = c.file(r)
				c.note(os.WriteFile(c.half.path, []byte("endpoints: [http:"), 0o600))
				if r.IntN(2) == 0 {
					c.stop()
					c.start()
				}
			},
			end: func(c *cluster, _ *rand.Rand) { c.note(agents.WriteClientFile(c.half.path, c.Cluster, c.half.to)) },
		},
	}
	for _, f := range all {
		if slices.Contains([]string{"compact", "expire", "replace", "wipe"}, f.name) {
			all = append(all, f.duringWrite())
		}
	}
	all = append(all, hostile())
	all = append(all, memberFaults()...)
	for _, f := range networkFaults() {
		all = append(all, f.ofStore(), f.ofRoute())
		if f.end != nil && !f.ofKvstores {
			all = append(all, f.ofAPI())
		}
	}
	return all
}

// duringWrite is the fault between the next write and its answer.
func (f fault) duringWrite() fault {
	return fault{name: f.name + "-write", begin: func(c *cluster, r *rand.Rand) {
		c.net.change(func() {
			c.net.strike = func() {
				c.flaps.fault()
				f.begin(c, r)
			}
		})
	}}
}

// hasOthers reports whether the writer of the keys of a family leaves those of others.
func (c *cluster) hasOthers(of *recorded) bool {
	return of.prefix == of.r.Prefix(c.Own.Name, false) &&
		(of.r == wire.Identities || len(c.members) > 0 && (of.r == wire.Nodes || of.r == wire.IPs))
}

// spoiledName returns the name of a key, or one that is similar.
func spoiledName(r *rand.Rand, name string) string {
	switch r.IntN(6) {
	case 0:
		return name + "x"
	case 1:
		return name[:len(name)/2+1]
	case 2:
		return name + "/" + name
	}
	return name
}

// spoiled returns a value with an error, or that of another key.
func spoiled(r *rand.Rand, value, other []byte) []byte {
	value = slices.Clone(value)
	at := r.IntN(len(value) + 1)
	switch r.IntN(5) {
	case 0:
		return value[:at]
	case 1:
		return slices.Insert(value, at, byte(r.Uint32()))
	case 2:
		return bytes.Repeat([]byte("{"), r.IntN(10_000))
	case 3:
		return other
	}
	if at < len(value) {
		value[at] ^= 1 << r.IntN(8)
	}
	return value
}

// tear spoils the files in a directory, or removes them.
func tear(dir string, r *rand.Rand) error {
	files, err := os.ReadDir(dir)
	for _, file := range files {
		path := filepath.Join(dir, file.Name())
		content, failed := os.ReadFile(path)
		if r.IntN(4) == 0 {
			err = errors.Join(err, failed, os.Remove(path))
			continue
		}
		switch r.IntN(3) {
		case 0: // another ID, or another cluster
			content = bytes.Replace(content, fmt.Append(nil, 1+r.IntN(3)), fmt.Append(nil, 1+r.IntN(3)), 1+r.IntN(3))
		case 1: // two clusters have the IDs of each other
			two := regexp.MustCompile(`("c\d+":)(\d+)(.*?"c\d+":)(\d+)`)
			content = two.ReplaceAll(content, []byte("${1}${4}${3}${2}"))
		case 2:
			content = spoiled(r, content, content)
		}
		err = errors.Join(err, failed, os.WriteFile(path, content, 0o600))
	}
	return err
}

func faultOf(name string) (fault, bool) {
	all := faults()
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fault{}, false
	}
	return all[i], true
}
