package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const (
	mappingsPrefix  = "cilium/state/identities/v1/id/"
	addressesPrefix = "cilium/state/ip/v1/default/"
)

// migrating is a cluster of two nodes whose identities are migrated.
type migrating struct {
	*publishing
	accounts map[string]string    // the kubeconfig of agents ("run") and of operators ("operate")
	running  map[string]*exec.Cmd // by "operate" or the node's name
	pods     int
}

func newMigrating(t *testing.T) *migrating {
	t.Helper()
	m := &migrating{publishing: newPublishing(t), running: make(map[string]*exec.Cmd)}
	m.Apply(t, manifest(t, "ciliumidentities.yaml")...)
	m.Apply(t, manifest(t, "identities.yaml")...)
	m.Apply(t, manifest(t, "mesh-agent.yaml")[0])
	m.Apply(t, manifest(t, "kubernetes.yaml")...)
	m.Apply(t, manifest(t, "operate.yaml")[:3]...) // account, role and binding
	m.accounts = map[string]string{                // with only the rights of the manifests
		"run":     m.Kubeconfig(t, m.Addr(), m.Token(t, "kube-system", "mesh-agent")),
		"operate": m.Kubeconfig(t, m.Addr(), m.Token(t, "kube-system", "mesh-agent-operate")),
	}
	t.Cleanup(func() {
		for name := range maps.Clone(m.running) {
			m.stop(t, name)
		}
	})
	return m
}

func (m *migrating) settings(mode modes.Mode, account string) []string {
	return []string{
		"--cluster-name", "east", "--cluster-id", "3", "--kvstore-opt", "etcd.address=" + m.etcd.Endpoint(),
		"--kubeconfig", m.accounts[account], "--clustermesh-config", m.dir, "--identity-allocation-mode", string(mode),
	}
}

// restart runs a process in a mode, after the earlier process of the same name has ended.
func (m *migrating) restart(t *testing.T, name string, mode modes.Mode, command string, flags ...string) {
	t.Helper()
	if m.running[name] != nil {
		m.stop(t, name)
	}
	args := append([]string{command, "--listen", "127.0.0.1:0", "--socket", filepath.Join(m.dir, name+".sock")}, m.settings(mode, command)...)
	cmd := exec.Command(m.program, append(args, flags...)...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	waittest.Must(t, cmd.Start())
	m.running[name] = cmd
}

func (m *migrating) stop(t *testing.T, name string) {
	t.Helper()
	cmd := m.running[name]
	delete(m.running, name)
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait reports
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func (m *migrating) operate(t *testing.T, mode modes.Mode, gc string) {
	t.Helper()
	m.restart(t, "operate", mode, "operate", "--identity-gc-interval", gc)
}

func (m *migrating) agent(t *testing.T, n int, mode modes.Mode) {
	t.Helper()
	m.restart(t, fmt.Sprint("node-", n), mode, "run", "--node-name", fmt.Sprint("node-", n), "--node-ip", fmt.Sprint("192.168.0.", n),
		"--kvstore-periodic-sync", "2s")
	m.fresh(t)
}

// fresh makes pods with unused labels, one on each node, and waits until both have the same identity and all readers
// can find its labels.
func (m *migrating) fresh(t *testing.T) {
	t.Helper()
	m.pods++
	for n := 1; n <= 2; n++ {
		text := pod(fmt.Sprintf("fresh-%d-%d", m.pods, n), fmt.Sprint("node-", n), fmt.Sprintf("10.%d.0.%d", n, m.pods))
		m.Apply(t, strings.Replace(text, fmt.Sprintf("labels: {app: fresh-%d-%d}", m.pods, n), fmt.Sprintf("labels: {app: fresh-%d}", m.pods), 1))
	}
	m.until(t, fmt.Sprintf("the pods of round %d have their identity", m.pods), func() bool {
		all := m.contents(t)
		one, two := identityOf(all[addressesPrefix+fmt.Sprint("10.1.0.", m.pods)]), identityOf(all[addressesPrefix+fmt.Sprint("10.2.0.", m.pods)])
		if one != 0 && two != 0 && one != two {
			t.Fatalf("the pods of round %d have the identities %d and %d", m.pods, one, two)
		}
		return one != 0 && two != 0 && all[mappingsPrefix+fmt.Sprint(one)] != ""
	})
}

func identityOf(address string) uint32 {
	var ip wire.IPIdentityPair
	if json.Unmarshal([]byte(address), &ip) != nil {
		return 0
	}
	return ip.Identity
}

// command runs a command to its end.
func (m *migrating) command(t *testing.T, mode modes.Mode, args ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, m.program, append(args, m.settings(mode, "run")...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), err
}

// awaitAlike waits until the kvstore and Kubernetes have the same identities.
func (m *migrating) awaitAlike(t *testing.T, mode modes.Mode, flags ...string) {
	t.Helper()
	var out string
	var err error
	defer func() {
		if t.Failed() {
			t.Logf("%v: %s", err, out)
		}
	}()
	m.until(t, "nothing differs", func() bool {
		out, err = m.command(t, mode, append([]string{"identity", "compare"}, flags...)...)
		return err == nil
	})
}

// allocate runs a process that allocates labels, and returns the number.
func (m *migrating) allocate(t *testing.T, mode modes.Mode, label string) string {
	t.Helper()
	out, err := m.command(t, mode, "identity", "allocate", "--node-ip", "192.168.0.9", "--once", label)
	waittest.Must(t, err)
	return strings.TrimSpace(out)
}

// awaitCollected runs a process that allocates and releases labels, and waits until the identity is gone from each
// place that the mode uses.
func (m *migrating) awaitCollected(t *testing.T, mode modes.Mode) {
	t.Helper()
	args := []string{"identity", "allocate", "--node-ip", "192.168.0.9", "k8s:app=short-lived-" + string(mode)}
	cmd := exec.Command(m.program, append(args, m.settings(mode, "run")...)...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	waittest.Must(t, err)
	waittest.Must(t, cmd.Start())
	number, err := bufio.NewReader(out).ReadString('\n')
	number = strings.TrimSpace(number)
	ciliumIdentities := m.Client(t).Resource(schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"})
	inKubernetes := func() bool {
		_, err := ciliumIdentities.Get(t.Context(), number, metav1.GetOptions{})
		return err == nil
	}
	if err != nil || m.contents(t)[mappingsPrefix+number] == "" || inKubernetes() != mode.InKubernetes() {
		t.Errorf("%s: %q is not where it should be: %v", mode, number, err)
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), cmd.Wait()); err != nil {
		t.Errorf("allocate: %v", err)
	}
	m.until(t, "what nobody uses is collected", func() bool { return m.contents(t)[mappingsPrefix+number] == "" && !inKubernetes() })
}

// TestIdentitiesMoveToKubernetesAndBack: through all steps, while agents run in adjacent steps, each set of labels has
// one number.
func TestIdentitiesMoveToKubernetesAndBack(t *testing.T) {
	t.Parallel()
	m := newMigrating(t)
	m.Apply(t, node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"), node("node-2", "192.168.0.2", "2026-01-01T00:00:00Z"))
	numbers := make(map[string]string)
	known := func(mode modes.Mode) { // each mode finds all earlier numbers, and allocates a new one
		t.Helper()
		for label, number := range numbers {
			if got := m.allocate(t, mode, label); got != number {
				t.Errorf("%s: %s has the number %s, it was %s", mode, label, got, number)
			}
		}
		label := "k8s:app=of-" + string(mode)
		numbers[label] = m.allocate(t, mode, label)
	}

	m.operate(t, modes.KVStore, "0s")
	m.restart(t, "node-1", modes.KVStore, "run", "--node-name", "node-1", "--node-ip", "192.168.0.1", "--kvstore-periodic-sync", "2s")
	m.agent(t, 2, modes.KVStore)
	known(modes.KVStore)
	if out, err := m.command(t, modes.KVStore, "identity", "compare"); err == nil {
		t.Errorf("nothing was to differ before the migration: %s", out)
	}

	for _, mode := range []modes.Mode{modes.DoubleWriteReadKVStore, modes.DoubleWriteReadCRD, modes.CRD} {
		m.operate(t, mode, "0s")
		m.agent(t, 1, mode)
		m.agent(t, 2, mode)
		if mode.InKVStore() {
			m.awaitAlike(t, mode, "--copy")
		}
		known(mode)
	}

	// And back, with garbage collection.
	m.operate(t, modes.CRD, "1s")
	for _, mode := range []modes.Mode{modes.DoubleWriteReadCRD, modes.DoubleWriteReadKVStore, modes.KVStore} {
		m.agent(t, 1, mode)
		m.agent(t, 2, mode)
		m.operate(t, mode, "1s")
		if mode.InKubernetes() {
			m.awaitAlike(t, mode, "--copy-back")
		}
		m.fresh(t)
		known(mode)
		m.awaitCollected(t, mode)
	}
	m.checkHistory(t)
}

// TestEtcdAloneSufficesWhileItIsRead: in double write mode, while the API server is unreachable, labels get their
// numbers in etcd, and keep them after its return.
func TestEtcdAloneSufficesWhileItIsRead(t *testing.T) {
	t.Parallel()
	m := newMigrating(t)
	before := m.allocate(t, modes.DoubleWriteReadKVStore, "k8s:app=before")
	m.Kill(t)
	during := m.allocate(t, modes.DoubleWriteReadKVStore, "k8s:app=during")
	if again := m.allocate(t, modes.DoubleWriteReadKVStore, "k8s:app=before"); again != before {
		t.Errorf("the number was %s and is %s", before, again)
	}
	m.Restart(t)
	m.awaitAlike(t, modes.DoubleWriteReadKVStore, "--copy")
	for label, number := range map[string]string{"k8s:app=before": before, "k8s:app=during": during} {
		if got := m.allocate(t, modes.CRD, label); got != number {
			t.Errorf("%s has %s in Kubernetes, %s in etcd", label, got, number)
		}
	}
}

// TestWhatIsMissingInKubernetesIsSaid: at the start, with the remedy.
func TestWhatIsMissingInKubernetesIsSaid(t *testing.T) {
	t.Parallel()
	m := newMigrating(t)
	m.Delete(t, manifest(t, "ciliumidentities.yaml")...)
	m.until(t, "the kind is gone", func() bool {
		_, err := m.command(t, modes.CRD, "identity", "allocate", "--once", "k8s:app=web")
		return err != nil && strings.Contains(err.Error(), "apply deploy/ciliumidentities.yaml")
	})
	m.Apply(t, manifest(t, "ciliumidentities.yaml")...)
	m.Delete(t, manifest(t, "identities.yaml")...)
	m.until(t, "the rights are gone", func() bool {
		_, err := m.command(t, modes.CRD, "identity", "allocate", "--once", "k8s:app=web")
		return err != nil && strings.Contains(err.Error(), "apply deploy/identities.yaml")
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args := append([]string{"run", "--listen", "127.0.0.1:0", "--socket", filepath.Join(m.dir, "s"), "--node-name", "node-1", "--node-ip", "192.168.0.1"},
		m.settings(modes.CRD, "run")...)
	out, err := exec.CommandContext(ctx, m.program, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "apply deploy/identities.yaml") {
		t.Errorf("%v: %s", err, out)
	}
}

// checkHistory checks all revisions of the etcd: each number belonged to only one set of labels, and each set of labels
// and each pod had only one number. At the end the identity of each pod exists, without a lease.
func (m *migrating) checkHistory(t *testing.T) {
	t.Helper()
	client := m.etcd.Client(t)
	now, err := client.Get(t.Context(), "cilium/", clientv3.WithPrefix())
	waittest.Must(t, err)
	labels, numbers, pods := map[string]string{}, map[string]string{}, map[string]uint32{}
	// The header of a response has the present revision of the store, also if the response has only a part of the
	// history.
	const last = "cilium/state/last"
	_, err = client.Put(t.Context(), last, "")
	waittest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for resp := range client.Watch(ctx, "cilium/state/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if resp.Err() != nil {
			t.Fatal(resp.Err())
		}
		for _, e := range resp.Events {
			key, value := string(e.Kv.Key), string(e.Kv.Value)
			id, isMapping := strings.CutPrefix(key, mappingsPrefix)
			switch {
			case e.Type == clientv3.EventTypeDelete:
			case isMapping:
				if before := labels[id]; before != "" && before != value {
					t.Errorf("the number %s was of %s and of %s", id, before, value)
				}
				if before := numbers[value]; before != "" && before != id {
					t.Errorf("%s had the numbers %s and %s", value, before, id)
				}
				labels[id], numbers[value] = value, id
			case strings.HasPrefix(key, addressesPrefix):
				if before := pods[key]; before != 0 && before != identityOf(value) {
					t.Errorf("%s had the identities %d and %d", key, before, identityOf(value))
				}
				pods[key] = identityOf(value)
			}
		}
		if slices.ContainsFunc(resp.Events, func(e *clientv3.Event) bool { return string(e.Kv.Key) == last }) {
			break
		}
	}
	if want := 2 * m.pods; len(pods) != want {
		t.Errorf("%d pods had addresses, want %d", len(pods), want)
	}
	for address, id := range pods {
		i := slices.IndexFunc(now.Kvs, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == mappingsPrefix+strconv.Itoa(int(id)) })
		if i < 0 || now.Kvs[i].Lease != 0 {
			t.Errorf("the identity %d of %s: %v", id, address, i)
		}
	}
}
