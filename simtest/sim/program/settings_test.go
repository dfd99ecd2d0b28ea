package program

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSimulateRunsACommand(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.Clusters = 1
	s.Mesh.Dir = filepath.Join(t.TempDir(), "mesh")
	s.Command = []string{"/bin/sh", "-c", `test -f "$1/cluster1" && test -d "$2" && test -z "$5" && exec sleep 1000`, "sh", "{dir}", "{tmp}"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Command = append(s.Command, "--listen", l.Addr().String())
	out := new(waittest.Output)
	ctx, cancel := context.WithCancel(waittest.Context(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Simulate(ctx, s, out) }()
	waittest.Until(t, "the screen", func() bool { return strings.HasSuffix(out.String(), "\nhttp://"+l.Addr().String()+"/ui/\n") }, out.String)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"cluster1: id 1, https://127.0.0.1:", "ready: 1 clusters, ", s.Mesh.Dir, "/bin/sh lookup 10."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if _, err := os.Lstat(s.Mesh.Dir); err == nil {
		t.Error("the client directory is left")
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Settings)
		want   string // names and IDs
		err    string
	}{
		"default":          {func(*Settings) {}, "cluster1=1 cluster2=2 cluster3=3", ""},
		"prefix, first ID": {func(s *Settings) { s.Prefix, s.FirstID = "east-", 7 }, "east-7=7 east-8=8 east-9=9", ""},
		"names":            {func(s *Settings) { s.Names = []string{"a", "b"} }, "a=1 b=2", ""},
		"none":             {func(s *Settings) { s.Clusters = 0 }, "", "must be in 1..511"},
		"too many":         {func(s *Settings) { s.Clusters = 256 }, "", "256"},
		"negative churn":   {func(s *Settings) { s.Mesh.Churn = -1 }, "", "churn"},
		"no such command":  {func(s *Settings) { s.Command = []string{"/no/such"} }, "cluster1=1 cluster2=2 cluster3=3", "command to run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := DefaultSettings()
			tc.change(&s)
			if err := s.Validate(); (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error is %v", err)
			}
			clusters, _ := s.Descriptions()
			var words []string
			for _, c := range clusters {
				words = append(words, c.Name+"="+strconv.Itoa(int(c.ID)))
			}
			if got := strings.Join(words, " "); tc.want != "" && got != tc.want {
				t.Errorf("clusters are %s", got)
			}
		})
	}
}

func TestSettingsForModes(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.Clusters, s.Cached, s.Local = 4, 2, "home"
	clusters, err := s.Descriptions()
	must(t, err)
	var got []string
	for _, c := range clusters {
		got = append(got, c.Name+" "+c.Mode.String()+" "+strconv.Itoa(int(c.ID)))
	}
	want := []string{"cluster1 remote 1", "cluster2 remote 2", "cluster3 cached 3", "cluster4 cached 4", "home local 5"}
	if !slices.Equal(got, want) {
		t.Errorf("clusters are %q", got)
	}
	s.LocalID = 99
	if clusters, err = s.Descriptions(); err != nil || clusters[4].ID != 99 {
		t.Errorf("the local cluster's ID is %d: %v", clusters[4].ID, err)
	}
	for _, bad := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Cached = 5 }, "0..4"},
		{func(s *Settings) { s.Local, s.LocalID = "", 9 }, "needs the name"},
		{func(s *Settings) { s.LocalID = 2 }, "same ID 2"},
		{func(s *Settings) { s.Local = "cluster2" }, "two clusters are named cluster2"},
	} {
		broken := s
		bad.change(&broken)
		if err := broken.Validate(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("want %q, got %v", bad.want, err)
		}
	}
}
