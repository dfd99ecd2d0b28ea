package wire

import (
	"fmt"
	"strings"
	"testing"
)

func TestGoldenClusterNames(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]rule[string, string]](t, "cluster_names.json") {
		t.Run(fmt.Sprintf("%q", c.Input), func(t *testing.T) {
			t.Parallel()
			checkOutcome(t, ValidateClusterName(c.Input), c.OK, c.Error)
		})
	}
}

func TestGoldenMaxConnectedClusters(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]rule[uint32, string]](t, "max_connected_clusters.json") {
		checkOutcome(t, ValidateMaxConnectedClusters(c.Input), c.OK, c.Error)
	}
}

func TestGoldenLocalCluster(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]rule[ClusterInfo, string]](t, "local_cluster_info.json") {
		t.Run(fmt.Sprintf("%+v", c.Input), func(t *testing.T) {
			t.Parallel()
			checkOutcome(t, c.Input.Validate(), c.OK, c.Error)
			_, strict, _ := strings.Cut(c.Note, ": ")
			checkOutcome(t, c.Input.ValidateStrict(), strict == "ok", strict)
		})
	}
	if err := (ClusterInfo{Name: "c1", ID: 1, MaxConnectedClusters: 300}).Validate(); err == nil {
		t.Error("a limit of 300 clusters is accepted")
	}
}

func TestGoldenRemoteConfigs(t *testing.T) {
	t.Parallel()
	type configVector struct {
		Local        ClusterInfo
		RemoteConfig string `json:"remote_config"`
		OK           bool
		Error        string
	}
	for _, c := range golden[[]configVector](t, "validate_remote_config.json") {
		t.Run(fmt.Sprintf("%d/%s", c.Local.MaxConnectedClusters, c.RemoteConfig), func(t *testing.T) {
			t.Parallel()
			remote, err := DecodeClusterConfig([]byte(c.RemoteConfig))
			must(t, err)
			checkOutcome(t, remote.Validate(c.Local), c.OK, c.Error)
		})
	}
}

func TestGoldenIdentityLayouts(t *testing.T) {
	t.Parallel()
	type layoutVectors struct {
		Max        uint32 `json:"max_connected_clusters"`
		Bits       uint   `json:"cluster_id_bits"`
		Shift      uint   `json:"cluster_id_shift"`
		Identities []struct {
			ID       uint32 `json:"numeric_identity"`
			Text     string `json:"string"`
			Reserved bool   `json:"is_reserved"`
		} `json:"identity_to_cluster"`
		Ranges []struct {
			Cluster uint32 `json:"cluster_id"`
			Min     uint32
			Max     uint32
			Error   string `json:"validate_cluster_id_error"`
		} `json:"cluster_ranges"`
	}
	for _, file := range []string{"identity_layout_255.json", "identity_layout_511.json"} {
		v := golden[layoutVectors](t, file)
		l, err := NewLayout(v.Max)
		must(t, err)
		if l.Max() != v.Max || 24-l.Shift() != v.Bits || l.Shift() != v.Shift {
			t.Errorf("%s: layout is %d, %d", file, l.Max(), l.Shift())
		}
		for _, i := range v.Identities {
			name, reserved := ReservedIdentityName(i.ID)
			if reserved != i.Reserved || reserved && name != i.Text {
				t.Errorf("%s: identity %d is %q, %v", file, i.ID, name, reserved)
			}
		}
		for _, r := range v.Ranges {
			if lo, hi := l.Range(r.Cluster); lo != r.Min || hi != r.Max {
				t.Errorf("%s: range of cluster %d is %d to %d, want %d to %d", file, r.Cluster, lo, hi, r.Min, r.Max)
			}
			checkOutcome(t, l.ValidateClusterID(r.Cluster), r.Error == "", r.Error)
		}
	}
}

func TestTheZeroLayoutIsThatOf255Clusters(t *testing.T) {
	t.Parallel()
	if l, err := NewLayout(255); err != nil || l != (Layout{}) {
		t.Error(l, err)
	}
	if _, err := NewLayout(0); err == nil {
		t.Error("a limit of 0 clusters is accepted")
	}
	if (Layout{}).Contains(1<<16+2, 2<<16) {
		t.Error("cluster 65538 has identities of cluster 2")
	}
}
