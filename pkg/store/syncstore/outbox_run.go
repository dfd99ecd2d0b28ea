package syncstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// How long the outbox waits after the kvstore could not be reached (twice as long
// with each time).
const (
	troubleFirst = 5 * time.Millisecond
	troubleMax   = 5 * time.Second
)

// departures is what a run of an outbox has under way.
type departures struct {
	o       *Outbox
	landed  chan landing
	flights int
	retry   bool // one of them is of a write that was refused before, or of a Sync of which some were

	pause   *backoff.ExponentialBackOff
	trouble bool      // the last thing that landed could not reach the kvstore
	resume  time.Time // nothing departs before this
}

// landing is the end of a transaction.
type landing struct {
	err   error // nil also for writes that were refused
	retry bool
}

// Run writes until ctx ends, or a lock is lost: then the error wraps
// [kvstore.ErrLockLeaseExpired], and nothing more is written. One Run at a time.
func (o *Outbox) Run(ctx context.Context) error {
	select {
	case o.running <- struct{}{}:
		defer func() { <-o.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &departures{o: o, landed: make(chan landing, transactions), pause: backoff.NewExponentialBackOff()}
	d.pause.InitialInterval, d.pause.MaxInterval = troubleFirst, troubleMax
	defer d.wait()
	defer cancel()
	for {
		next := d.depart(ctx)
		if err := d.await(ctx, next); err != nil {
			return err
		}
	}
}

// depart sends what there is, and tells when to look again; zero for never.
func (d *departures) depart(ctx context.Context) (next time.Time) {
	now := time.Now()
	if now.Before(d.resume) {
		return d.resume
	}
	if d.flights < transactions && !d.retry {
		var l load
		if l, next = d.o.failed(now); l != nil {
			d.send(ctx, l, true)
		}
	}
	for d.flights < transactions && (!d.trouble || d.flights == 0) {
		l, alone, due := d.o.collect(d.flights == 0, !d.retry)
		next = earlier(next, due)
		if l == nil {
			break
		}
		d.send(ctx, l, alone)
	}
	return next
}

func (d *departures) send(ctx context.Context, l load, retry bool) {
	d.flights++
	d.retry = d.retry || retry
	go func() { d.landed <- landing{d.o.write(ctx, l), retry} }()
}

// await waits until there is a reason to look again.
func (d *departures) await(ctx context.Context, next time.Time) error {
	var due <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.o.wake:
	case <-due:
	case one := <-d.landed:
		return d.land(ctx, one)
	}
	return nil
}

// land draws the conclusions from the end of a transaction.
func (d *departures) land(ctx context.Context, one landing) error {
	d.flights--
	if one.retry {
		d.retry = false
	}
	switch {
	case one.err == nil:
		if d.trouble {
			d.o.log.Info("Writing to the kvstore again")
		}
		d.trouble = false
		d.o.note(nil)
		d.pause.Reset()
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(one.err, kvstore.ErrLockLeaseExpired):
		return fmt.Errorf("writing to the kvstore: %w", one.err)
	default:
		if !d.trouble {
			d.o.log.Warn("Cannot write to the kvstore, trying again", "error", one.err)
		}
		d.trouble = true
		d.o.note(one.err)
		if errors.Is(one.err, kvstore.ErrNoSpace) {
			d.o.noSpace()
		}
		if now := time.Now(); !now.Before(d.resume) { // else it is of the same time
			d.resume = now.Add(d.pause.NextBackOff())
		}
	}
	return nil
}

// wait waits for everything that is under way.
func (d *departures) wait() {
	for ; d.flights > 0; d.flights-- {
		<-d.landed
	}
}

// write makes a transaction; when it is refused two halves of it, and so on, until
// the writes that are to blame are alone. It settles all parts. The error is that
// of a kvstore that cannot be reached, or of a lock that is lost.
func (o *Outbox) write(ctx context.Context, l load) error {
	for todo := []load{l}; len(todo) > 0; todo = todo[1:] {
		l := todo[0]
		writes := l.writes()
		res, err := o.writer.Update(ctx, writes, append(o.held(), kvstore.Leased())...)
		switch {
		case err == nil:
			l.settle(made, res.At.Revision, nil)
		case !kvstore.IsRefused(err):
			for _, l := range todo {
				l.settle(unmade, 0, nil)
			}
			return err
		case len(writes) == 1:
			level := slog.LevelDebug
			if o.warnings.Allow() {
				level = slog.LevelWarn
			}
			o.log.Log(ctx, level, "The kvstore refuses a write; it is tried again after a while", "error", err)
			l.settle(refused, 0, err)
		default:
			first, second := l.halves()
			todo = append(todo, first, second) // large ones first: most of them are good
		}
	}
	return nil
}

func (l load) writes() []kvstore.Write {
	var writes []kvstore.Write
	for _, c := range l {
		for i := range c.parts {
			p := &c.parts[i]
			one := kvstore.Write{Key: c.of.p.Prefix + p.name, Value: p.value, Delete: p.gone, Unleased: c.of.p.Unleased}
			if c.of.p.CreateOnly {
				one.Kept = func(kv kvstore.KeyValue) { p.kept = &kv }
			}
			writes = append(writes, one)
		}
	}
	return writes
}

func (l load) settle(o outcome, rev int64, err error) {
	for _, c := range l {
		c.of.settle(c.parts, o, rev, err)
	}
}

// halves splits a transaction: between Syncs where there are several, so that one
// with bad luck troubles the others least.
func (l load) halves() (first, second load) {
	if n := len(l); n > 1 {
		return l[:n/2], l[n/2:]
	}
	c := l[0]
	n := len(c.parts) / 2
	return load{{c.of, c.parts[:n]}}, load{{c.of, c.parts[n:]}}
}
