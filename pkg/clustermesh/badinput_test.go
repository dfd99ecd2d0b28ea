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

// ward is a mesh of clusters with one kind of bad input each, and of one good cluster that must not be affected. The
// clusters are copies, so that one etcd can have several.
type ward struct {
	*world
	plain, secure *etcdtest.Server
	certs         *etcdtest.Certs // of the secure etcd
	next          uint32          // the ID of the next cluster
}

// illness is one kind of bad input.
type illness struct {
	name string
	// catch gives the cluster the bad input, and returns a function that repairs it. When catch returns, the cluster
	// must be filled and its client file must be in the mesh directory.
	catch func(p *patient) (mend func())
	state remotecluster.State
	says  []string // parts of the status: the error, its place, and the remedy
}

// patient is a cluster with bad input.
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
		etcdOf(p).Timings.Connect, etcdOf(p).Timings.Dial = 2*time.Second, time.Second
		etcdOf(p).Dial = (&net.Dialer{Resolver: resolver}).DialContext
	})
	return h
}

// unknownNames returns a resolver with a server of its own, which resolves no name.
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
			b[2] |= 0x80                // a response
			b[3] = b[3]&0xf0 | 0x80 | 3 // NXDOMAIN
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

// admit creates a cluster with an ID of its own.
func (h *ward) admit(illness string) *patient {
	name := strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(illness))
	name = strings.Trim(name[:min(len(name), 30)], "-")
	p := &patient{ward: h, remote: &remote{name: name, id: h.next, cached: true}, file: filepath.Join(h.dir, name)}
	p.kv = h.plain.Local()
	h.next++
	return p
}

// in returns the patient for use in a subtest.
func (p *patient) in(t *testing.T) *patient {
	w := *p.ward.world
	w.t = t
	p.t, p.w = t, &w
	return p
}

// suffer gives the cluster the bad input, checks the status, repairs the input, and waits until the cluster is well.
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

// complaints returns all errors in the status of a cluster.
func complaints(st remotecluster.Status) string {
	all := []string{}
	if st.Message != "" {
		all = append(all, st.Message)
	}
	for r, s := range st.Families {
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
