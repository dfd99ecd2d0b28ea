package register

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const (
	webLabels  = "k8s:app=web;" + of + ";"
	webAddress = "cilium/state/ip/v1/default/10.3.0.1"
	paths      = wire.IdentityAllocation
)

// admin is a client that may everything.
func (w *world) admin() *etcd.Session {
	w.t.Helper()
	cfg, err := clientfile.Load(w.etcd.ConfigFileOf(w.t, "root"))
	must(w.t, err)
	return sessiontest.ConnectWith(w.t, cfg, etcd.DefaultOptions())
}

// number is that of a reference.
func (w *world) number(node string) uint64 {
	id, _ := strconv.ParseUint(w.contents()[paths.Reference(webLabels, node)], 10, 64)
	return id
}

// cutOff is what happens while the node is away for longer than its leases: they end,
// its mapping is collected unless others use it, and other nodes give its labels
// another number. It returns that.
func (w *world) cutOff(others ...string) (other uint64) {
	w.t.Helper()
	ctx, admin, c := w.t.Context(), w.admin(), w.etcd.Client(w.t)
	lock, err := admin.Lock(ctx, paths.Lock(webLabels)) // so that the node allocates again only after all of that
	must(w.t, err)
	defer lock.Unlock()
	own := w.number("192.168.0.1")
	resp, err := c.Get(ctx, paths.Reference(webLabels, "192.168.0.1"))
	must(w.t, err)
	_, err = c.Revoke(ctx, clientv3.LeaseID(resp.Kvs[0].Lease))
	must(w.t, err)
	if w.number("192.168.0.2") == 0 {
		_, err = c.Delete(ctx, paths.Mapping(own))
		must(w.t, err)
	}
	other = own + 1
	_, err = c.Put(ctx, paths.Mapping(other), webLabels)
	must(w.t, err)
	for _, node := range others {
		_, err = c.Put(ctx, paths.Reference(webLabels, node), fmt.Sprint(other))
		must(w.t, err)
	}
	return other
}

// published reports whether the pod is published with a number, and the node refers to it.
func (w *world) published(id uint64) func() bool {
	return func() bool {
		return w.number("192.168.0.1") == id && strings.Contains(w.contents()[webAddress], fmt.Sprintf(`"ID":%d,`, id))
	}
}

// TestANodeThatWasCutOffTakesTheNewerNumber of its labels: no other node uses the earlier one. Its pods are published
// with it, and the earlier mapping stays gone. It does so also if the node that allocated the newer one has released it.
func TestANodeThatWasCutOffTakesTheNewerNumber(t *testing.T) {
	t.Parallel()
	for name, others := range map[string][]string{"in use": {"192.168.0.9"}, "released": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takesTheNewerNumber(t, others)
		})
	}
}

func takesTheNewerNumber(t *testing.T, others []string) {
	t.Helper()
	w := newWorld(t)
	w.pod("web", "node", "10.3.0.1")
	w.listed()
	stop := w.register()
	defer stop()
	w.await("registered", with(of1("web", "10.3.0.1"))...)
	own := w.number("192.168.0.1")
	other := w.cutOff(others...)
	waittest.Until(t, "the newer number", w.published(other))
	resp, err := w.etcd.Client(t).Get(t.Context(), paths.Mapping(own))
	must(t, err)
	if len(resp.Kvs) != 0 {
		t.Errorf("the earlier mapping is there: %s", resp.Kvs[0].Value)
	}
}

// TestTwoNumbersInUseAreReported and healed: another node uses the earlier number too. The node keeps using it, until
// the references to it are withdrawn.
func TestTwoNumbersInUseAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pod("web", "node", "10.3.0.1")
	w.listed()
	log := new(waittest.Output)
	stop := w.register(func(p *Params) { p.Log, p.PeriodicSync = slog.New(slog.NewTextHandler(log, nil)), 500*time.Millisecond })
	defer stop()
	w.await("registered", with(of1("web", "10.3.0.1"))...)
	own := w.number("192.168.0.1")
	c := w.etcd.Client(t)
	_, err := c.Put(t.Context(), paths.Reference(webLabels, "192.168.0.2"), fmt.Sprint(own))
	must(t, err)
	other := w.cutOff("192.168.0.7", "192.168.0.8", "192.168.0.9")
	waittest.Until(t, "the number that it had", w.published(own))
	waittest.Until(t, "a line of the log", func() bool { return strings.Contains(log.String(), string(codes.LabelsInUseTwice)) })

	layout, err := wire.NewLayout(255)
	must(t, err)
	admin := w.admin()
	check := func() []string {
		contents, err := identity.Read(t.Context(), admin, identity.OwnPlace(), identity.Addresses)
		must(t, err)
		var found []string
		for _, f := range identity.Check(identity.Owner{Name: "east", ID: 3, Layout: layout}, contents).Findings {
			if f.Code == codes.LabelsInUseTwice || f.Code == codes.LabelsWithSeveralNumbers {
				found = append(found, string(f.Code)+" "+f.Subject)
			}
		}
		return found
	}
	if got, want := check(), []string{string(codes.LabelsInUseTwice) + " " + webLabels}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	done, err := identity.Heal(t.Context(), admin, paths, webLabels)
	must(t, err)
	if done == nil || done.Keep.ID != other || len(done.Keep.Nodes) != 3 || len(done.Withdraw) != 1 ||
		!slices.Equal(done.Withdraw[0].Nodes, []string{"192.168.0.1", "192.168.0.2"}) {
		t.Errorf("it did %+v", done)
	}
	waittest.Until(t, "the number that is kept", w.published(other))
	if n := w.number("192.168.0.2"); n != 0 {
		t.Errorf("the other node refers to %d", n)
	}
	if again, err := identity.Heal(t.Context(), admin, paths, webLabels); again != nil || err != nil {
		t.Errorf("again it did %+v, %v", again, err)
	}
}
