package clustermesh

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// ward is a mesh of clusters that are ill, each in another way, and of one that is well and must
// not notice. The clusters are copies, so that several can be in one etcd.
type ward struct {
	*world
	plain, secure *etcdtest.Server
	certs         *etcdtest.Certs // of the secure one
	next          uint32          // the ID of the next cluster
}

// illness is one kind of bad input.
type illness struct {
	name string
	// catch makes the cluster ill, and gives what mends it. Whatever catch does not do itself, the
	// cluster is filled and its client file is in the mesh directory then.
	catch func(p *patient) (mend func())
	state remotecluster.State
	says  []string // what is wrong, where, and what to do, as the status has it
}

// patient is a cluster that is ill.
type patient struct {
	*remote
	ward *ward
	t    *testing.T
	file string // its client file
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	h := newWard(t)
	beside := h.remote("beside", 1)
	beside.join()
	h.inState("beside", remotecluster.Ready)
	beside.converges()
	before, marks := h.mustStatus("beside"), beside.fingerprint()
	t.Run("ill", func(t *testing.T) {
		for _, list := range [][]illness{connections(), files(), configurations(), values()} {
			for _, ill := range list {
				p := h.admit(ill.name)
				t.Run(ill.name, func(t *testing.T) {
					t.Parallel()
					p.in(t).suffer(ill)
				})
			}
		}
	})
	after := h.mustStatus("beside")
	if after.State != remotecluster.Ready || after.Failures != before.Failures || !after.ConnectedSince.Equal(before.ConnectedSince) {
		t.Errorf("the cluster beside them noticed: %+v, was %+v", after, before)
	}
	if !maps.Equal(marks, beside.fingerprint()) {
		t.Error("the objects of the cluster beside them were touched")
	}
}

func newWard(t *testing.T) *ward {
	t.Helper()
	resolver := unknownNames(t)
	h := &ward{next: 2, plain: etcdtest.Start(t), certs: etcdtest.NewCerts(t)}
	h.secure = etcdtest.Start(t, etcdtest.WithTLS(h.certs))
	h.world = newWorld(t, func(p *Params) {
		p.KVStore.Timings.Connect, p.KVStore.Timings.Dial = 2*time.Second, time.Second
		p.KVStore.Dial = (&net.Dialer{Resolver: resolver}).DialContext
		p.KVStore.Timings.HeartbeatLimit = time.Hour // nobody writes any
	})
	return h
}

// unknownNames returns a resolver with a server of its own, which knows no name at all.
func unknownNames(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			b[2] |= 0x80                // an answer
			b[3] = b[3]&0xf0 | 0x80 | 3 // there is no such name
			_, _ = conn.WriteTo(b[:n], from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// admit makes a cluster with an ID of its own.
func (h *ward) admit(illness string) *patient {
	name := strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(illness))
	name = strings.Trim(name[:min(len(name), 30)], "-")
	p := &patient{ward: h, remote: &remote{name: name, id: h.next, cached: true}, file: filepath.Join(h.dir, name)}
	p.kv = h.plain.Local()
	h.next++
	return p
}

// in gives the patient to a test of its own.
func (p *patient) in(t *testing.T) *patient {
	w := *p.ward.world
	w.t = t
	p.t, p.w = t, &w
	return p
}

// suffer makes the cluster ill, reads the status, mends it, and sees it healed.
func (p *patient) suffer(ill illness) {
	p.t.Helper()
	mend := ill.catch(p)
	heard := ""
	p.w.until("what is wrong to be said: "+strings.Join(ill.says, " … "), func() bool {
		st, _ := p.w.status(p.name)
		heard = complaints(st)
		for _, part := range ill.says {
			if !strings.Contains(heard, part) {
				return false
			}
		}
		return st.State == ill.state
	}, func() string { return heard })
	p.t.Log(heard)
	mend()
	p.converges()
	p.w.until(p.name+" to be well", func() bool {
		st, _ := p.w.status(p.name)
		return st.State == remotecluster.Ready && st.Ready && complaints(st) == ""
	}, func() string { st, _ := p.w.status(p.name); return complaints(st) })
}

// complaints are everything that the status of a cluster says is wrong.
func complaints(st remotecluster.Status) string {
	all := []string{}
	if st.Message != "" {
		all = append(all, st.Message)
	}
	for r, s := range st.Sources {
		if s.Rejected > 0 {
			all = append(all, fmt.Sprintf("%d of its %s refused, such as %s", s.Rejected, r, s.Example))
		}
	}
	return strings.Join(all, "\n")
}

// write replaces the client file.
func (p *patient) write(lines ...string) {
	p.t.Helper()
	must(p.t, os.WriteFile(p.file+".tmp", []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	must(p.t, os.Rename(p.file+".tmp", p.file))
}
