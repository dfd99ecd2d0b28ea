package lookup

import (
	"bytes"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

func TestLookupText(t *testing.T) {
	t.Parallel()
	text := printer.NewFormat(printer.Text)
	node := &api.Node{Cluster: "c2", Name: "n1"}
	entry := func(kind, prefix string) *api.IP {
		return &api.IP{Prefix: prefix, Cluster: "c2", ClusterID: 2, Identity: 6, HostIP: "192.168.2.1", Source: "clustermesh", Kind: kind, Claims: 1}
	}
	pod := entry("endpoint", "10.2.1.10/32")
	pod.Identity, pod.Namespace, pod.Pod, pod.EncryptionKey = 131072, "default", "web-0", 3
	loser := *pod
	loser.Cluster, loser.ClusterID, loser.Identity = "c3", 3, 196608
	external := entry("endpoint", "10.2.1.0/24")
	external.HostIP = ""
	tests := map[string]*api.Lookup{
		"lookup-nobody":  {IP: "10.9.9.9"},
		"lookup-backend": {IP: "10.9.9.9", Services: []api.ServiceName{{Namespace: "default", Name: "web"}}},
		"lookup-pod": {
			IP: "10.2.1.10", Match: pod, Node: node,
			Identity: &api.Identity{ID: 131072, Cluster: "c2", Labels: map[string]string{"k8s:app": "web", "k8s:tier": "front"}},
			Services: []api.ServiceName{{Namespace: "default", Name: "web"}, {Namespace: "default", Name: "api"}},
			Candidates: []api.Candidate{
				{Entry: *pod, Won: true, Reason: "the winner: the strongest claim to the longest prefix"},
				{Entry: loser, Reason: "lost: cluster ID 2 precedes 3"},
				{Entry: *entry("pod-cidr", "10.2.1.0/24"), Reason: "lost: a shorter prefix than 10.2.1.10/32"},
			},
		},
		"lookup-node":     {IP: "192.168.2.1", Match: entry("node", "192.168.2.1/32"), Node: node, Identity: &api.Identity{ID: 6, Labels: map[string]string{"reserved:remote-node": ""}}},
		"lookup-pod-cidr": {IP: "10.2.1.77", Match: entry("pod-cidr", "10.2.1.0/24"), Node: node},
		"lookup-cidr":     {IP: "10.2.1.77", Match: external},
		"lookup-homeless": {IP: "10.2.1.2", Match: entry("health", "10.2.1.2/32")},
		"lookup-ingress":  {IP: "10.2.1.3", Match: entry("ingress", "10.2.1.3/32"), Node: node},
	}
	for name, l := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := command.Answer(&out, printer.Style{}, text, l, func(p *printer.Page) { Write(p, l, samples.Now) }); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, name, out.String())
		})
	}
}

func TestCopied(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.1.0.1": "10.1.0.1", " 10.1.0.1\n": "10.1.0.1", "10.1.0.1:8080": "10.1.0.1", "10.1.0.1/32": "10.1.0.1",
		"FD00::1": "FD00::1", "[fd00::1]": "fd00::1", "[fd00::1]:80": "fd00::1", "fd00::1/128": "fd00::1", "::ffff:10.1.0.1": "::ffff:10.1.0.1",
		// A text that is no address, or more than one, is returned unchanged.
		"": "", "10.1.0.0/24": "10.1.0.0/24", "fd00::/64": "fd00::/64", "10.1.0.1:x": "10.1.0.1:x", "shop/web-0": "shop/web-0", "web-0": "web-0",
		"010.1.0.1": "010.1.0.1", "fd00::1%eth0": "fd00::1%eth0",
	} {
		if got := copied(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
