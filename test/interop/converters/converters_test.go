package converters

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// numRandom is the number of random objects of each kind.
const numRandom = 60

// Flags that both sides have.
const (
	onlySlices      = "--clustermesh-service-v2=only-endpointslice"
	localNamespaces = "--clustermesh-default-global-namespace=false"
)

// mode is the configuration of both sides, and the objects.
type mode struct {
	name   string
	flags  []string // of both
	theirs []string // of Cilium's alone
	since  string   // the first release that has it
	// grouped: the endpoints of pods are in CiliumEndpointSlices. exports: each Service has a ServiceExport.
	grouped, exports bool
}

func modes() []mode {
	return []mode{
		{name: "default settings"},
		{name: "with CiliumEndpointSlices", theirs: []string{"--enable-cilium-endpoint-slice"}, since: "1.18", grouped: true},
		{name: "namespaces not global", flags: []string{localNamespaces}, since: "1.20"},
		{name: "with the MCS API", flags: []string{"--clustermesh-enable-mcs-api"}, since: "1.17", exports: true},
		{name: "EndpointSlices only", flags: []string{onlySlices}, since: "1.20"},
	}
}

// TestWhatOperatePublishes compares it with what the clustermesh-apiserver publishes of the same objects, through their
// changes.
func TestWhatOperatePublishes(t *testing.T) {
	seed := interop.Seed(t)
	for _, release := range interop.Releases(t) {
		t.Run(release, func(t *testing.T) {
			trial := interop.Trial{Name: "The same Kubernetes objects, published by the clustermesh-apiserver and by `mesh-agent operate`", Release: release}
			keys := make([]int, len(modes()))
			t.Run("in", func(t *testing.T) {
				for i, m := range modes() {
					if !has(release, m.since) {
						continue
					}
					t.Run(m.name, func(t *testing.T) {
						t.Parallel()
						keys[i] = newWorld(t, release, m).follow(t, newMaker(seed))
					})
				}
			})
			for i, m := range modes() {
				if keys[i] == 0 {
					continue
				}
				trial.Figures = append(trial.Figures, interop.Figure{Name: "keys that were compared, " + m.name, Value: strconv.Itoa(keys[i])})
			}
			if !t.Failed() {
				interop.KeepTrial(t, trial)
			}
		})
	}
}

// has reports whether a release is this one, or later; all releases have a feature without a first release.
func has(release, since string) bool { return since == "" || !interop.Older(release, since) }

// world is an API server, and the etcds of both sides.
type world struct {
	mode
	slices       bool            // the release publishes EndpointSlices, and only those in global namespaces
	accounts     bool            // its endpoints have service accounts
	anyCase      bool            // it reads annotations of any case
	lacks        []wire.Resource // resources that it does not publish
	kube         *kubetest.Server
	theirs, ours *etcdtest.Process
	marks        int
}

func newWorld(t *testing.T, release string, m mode) *world {
	t.Helper()
	w := &world{mode: m, slices: has(release, "1.20"), accounts: has(release, "1.19"), anyCase: has(release, "1.18"), kube: kubetest.Start(t), theirs: etcdtest.StartProcess(t), ours: etcdtest.StartProcess(t)}
	if !w.slices {
		w.lacks = append(w.lacks, wire.EndpointSlices)
	}
	if !has(release, "1.17") {
		w.lacks = append(w.lacks, wire.ServiceExports)
	}
	w.kube.Apply(t, definitions(t, release)...)
	w.apply(t, objects()...)
	startCilium(t, release, w.kube, w.theirs, append(m.flags, m.theirs...)...)
	interop.StartAgent(t, "operate", append([]string{
		"--cluster-name", cluster, "--cluster-id", strconv.Itoa(clusterID), "--kvstore-opt", "etcd.address=" + w.ours.Endpoint(),
		"--kubeconfig", w.kube.Kubeconfig(t, w.kube.Addr(), kubetest.Admin), "--publish-nodes-and-addresses",
		"--clustermesh-config", filepath.Join(t.TempDir(), "none"),
	}, m.flags...)...)
	return w
}

// follow creates objects, changes most and deletes some. It returns how many keys were compared.
func (w *world) follow(t *testing.T, m maker) (keys int) {
	t.Helper()
	keys += w.same(t, "what was there at the start")
	if w.slices {
		w.differ(t)
	}
	before := make([][]string, numRandom)
	for i := range numRandom {
		before[i] = texts(t, m.objects(i))
		w.apply(t, before[i]...)
	}
	keys += w.same(t, "what was created")
	for i := range numRandom {
		if i%5 == 0 {
			w.remove(t, before[i]...)
			continue
		}
		w.apply(t, texts(t, m.objects(i))...)
	}
	keys += w.same(t, "what was changed, and deleted")
	w.remove(t, slices.Concat(endpoints(), services(), nodes())...)
	return keys + w.same(t, "what was left")
}

func texts(t *testing.T, all []object) (texts []string) {
	t.Helper()
	for _, o := range all {
		texts = append(texts, o.text(t))
	}
	return texts
}

// apply creates objects in the world's mode, or changes them; remove deletes them.
func (w *world) apply(t *testing.T, texts ...string) { t.Helper(); w.kube.Apply(t, w.as(t, texts)...) }

func (w *world) remove(t *testing.T, texts ...string) {
	t.Helper()
	w.kube.Delete(t, w.as(t, texts)...)
}

// as returns the objects in the world's mode.
func (w *world) as(t *testing.T, texts []string) (all []string) {
	t.Helper()
	for _, text := range texts {
		var o object
		interop.Must(t, yaml.Unmarshal([]byte(text), &o))
		if status, is := o["status"].(map[string]any); is && !w.accounts {
			delete(status, "service-account")
			text = o.text(t)
		}
		labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
		switch kind := o["kind"]; {
		case kind == "EndpointSlice" && !w.slices && labels["service.kubernetes.io/service-proxy-name"] != nil:
			continue // Cilium looks at the Service alone
		case kind == "Service" && !w.anyCase && oddAnnotations(o):
			continue
		case kind == "Namespace" && !w.slices:
			delete(o["metadata"].(map[string]any), "annotations")
			text = o.text(t)
		case kind == "CiliumEndpoint" && w.grouped:
			text = group(o).text(t)
		case kind == "Service" && w.exports:
			all = append(all, text)
			text = export(o).text(t)
		}
		all = append(all, text)
	}
	return all
}

// oddAnnotations reports whether a Service has settings that releases before 1.18 understand differently: in capitals,
// or by the label of headless ones.
func oddAnnotations(service object) bool {
	meta := service["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	if labels["service.kubernetes.io/headless"] != nil {
		return true
	}
	annotations, _ := meta["annotations"].(map[string]any)
	for _, v := range annotations {
		if v != "true" && v != "false" && strings.EqualFold(v.(string), "true") {
			return true
		}
	}
	return false
}

// mark creates an object of each kind, which both sides publish after all earlier objects.
func (w *world) mark(t *testing.T) (keys []string) {
	t.Helper()
	w.marks++
	name, ip := fmt.Sprint("mark-", w.marks), fmt.Sprint("10.250.0.", w.marks)
	w.apply(t, node(name, "addresses: [{type: InternalIP, ip: "+ip+"}]"),
		identity(fmt.Sprint(number(5000+w.marks)), "'k8s:io.kubernetes.pod.namespace': global, 'k8s:mark': '"+name+"'"),
		endpoint("global", name, fmt.Sprintf("identity: {id: %d}, networking: {node: %s, addressing: [{ipv4: %[2]s}]}", number(5000+w.marks), ip)),
		slice("global", name, name, "addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: ["+ip+"], conditions: {ready: true}}]"),
		service("global", name, "annotations: {service.cilium.io/global: 'true'}", "ports: [{port: 80}]"))
	return []string{
		wire.Nodes.Prefix(cluster, false) + name, wire.Identities.Prefix(cluster, false) + fmt.Sprint(number(5000+w.marks)),
		wire.IPs.Prefix(cluster, false) + ip, wire.EndpointSlices.Prefix(cluster, false) + "global/" + name,
	}
}

// same waits until both have published the same, and returns the number of keys.
func (w *world) same(t *testing.T, what string) int { t.Helper(); return w.differences(t, what) }

// differ creates the disputed objects, waits until each side has published them in its way, and deletes them. An object
// on which both sides agree fails the test.
func (w *world) differ(t *testing.T) {
	t.Helper()
	var texts, keys []string
	for key, of := range disputed() {
		texts = append(texts, of...)
		switch {
		case slices.Contains(w.flags, onlySlices) && strings.HasPrefix(key, wire.Services.StorePrefix(false)):
		case slices.Contains(w.flags, localNamespaces) && strings.HasPrefix(key, wire.Identities.StorePrefix(false)):
		default:
			keys = append(keys, key)
		}
	}
	w.apply(t, texts...)
	w.differences(t, "what is disputed", keys...)
	w.remove(t, texts...)
}

// differences waits until both have published everything, the same except for these keys, and returns the number of all
// our keys.
func (w *world) differences(t *testing.T, what string, disputed ...string) (n int) {
	t.Helper()
	marks := w.mark(t)
	if slices.Contains(w.flags, onlySlices) { // we write this canary for readers that wait for it, which are all before 1.20
		disputed = append(disputed, wire.SyncedKey(cluster, wire.Services, false))
	}
	slices.Sort(disputed)
	var found []difference
	defer func() {
		for _, d := range found {
			if !slices.Contains(disputed, d.key) {
				t.Errorf("%s: %s: %s", what, d.key, d.text)
			}
		}
	}()
	waittest.Try(t, what+" to be published by both", func() error {
		theirs, ours := read(t, w.theirs), read(t, w.ours)
		if !w.slices {
			theirs.likeLater()
			ours.without(w.lacks...)
		}
		found = differences(theirs, ours, !w.slices)
		var keys []string
		for _, d := range found {
			keys = append(keys, d.key)
		}
		if !slices.Equal(keys, disputed) {
			return fmt.Errorf("they differ in %q, not in %q", keys, disputed)
		}
		for _, key := range marks {
			if theirs[key] == nil && (w.slices || !strings.HasPrefix(key, wire.EndpointSlices.StorePrefix(false))) {
				return fmt.Errorf("%s: neither has published it", key)
			}
		}
		n = len(ours)
		return nil
	})
	return n
}
