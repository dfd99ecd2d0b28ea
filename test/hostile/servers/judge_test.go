package servers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// kinds are the resources of the API.
var kinds = []string{"clusters", "nodes", "services", "serviceexports", "identities", "ips", "conflicts", "events", "health"}

// body is the body of the API's answer.
func (w *world) body(t *testing.T, path string) []byte {
	t.Helper()
	client := w.plain()
	defer client.CloseIdleConnections()
	client.Timeout = time.Minute
	resp, err := client.Get(w.url(path))
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s: %.300s", path, resp.Status, b)
	}
	return b
}

// judgeAPI: lists are JSON in UTF-8.
func (w *world) judgeAPI(t *testing.T) {
	paths := []string{"/v1/status", "/v1/codes", "/v1/xds/clients", "/v1/backends/ns/svc1", "/v1/lookup/10.9.128.1", "/openapi.json"}
	for _, kind := range kinds {
		paths = append(paths, "/v1/"+kind, "/v1/"+kind+"?limit=7")
	}
	for _, path := range paths {
		if b := w.body(t, path); !utf8.Valid(b) || !json.Valid(b) {
			t.Errorf("%s is no JSON in UTF-8", path)
		}
	}
}

// judgeWatch: each event of the first state of all resources is also JSON in UTF-8.
func (w *world) judgeWatch(t *testing.T) {
	resp, err := w.plain().Get(w.url("/v1/watch"))
	must(t, err)
	defer resp.Body.Close()
	in, synced, events := bufio.NewReader(resp.Body), 0, 0
	for synced < len(kinds) {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d events: %v", events, err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		switch value = strings.TrimPrefix(value, " "); field {
		case "event":
			if value == "synced" {
				synced++
			}
		case "data":
			events++
			if !utf8.ValidString(value) || !json.Valid([]byte(value)) {
				t.Errorf("an event is no JSON in UTF-8: %.300q", value)
			}
		case "id", "":
		default:
			t.Errorf("a line of the stream: %.300q", line)
		}
	}
	t.Logf("%d events", events)
}

// judgeCommands: the output of the command line can be shown on a terminal, with one line for each object of a table.
func (w *world) judgeCommands(t *testing.T) {
	for _, kind := range kinds {
		var list struct{ Items []json.RawMessage }
		for _, format := range []string{"json", "table", "wide", "name", "yaml"} {
			var problem bytes.Buffer
			cmd := exec.Command(theProgram(t), "get", kind, "-o", format, "--socket", w.agent.socket)
			cmd.Stderr = &problem
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("get %s -o %s: %v: %.300q", kind, format, err, &problem)
				continue
			}
			lines, wrong := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), 0
			for _, line := range lines {
				if !visible(strings.ReplaceAll(line, "\t", " ")) {
					if wrong++; wrong == 1 {
						t.Errorf("get %s -o %s prints %.300q", kind, format, line)
					}
				}
			}
			switch format {
			case "json":
				must(t, json.Unmarshal(out, &list))
			case "name":
				if kind != "events" && len(list.Items) > 0 && len(lines) != len(list.Items) {
					t.Errorf("get %s -o %s prints %d lines for %d objects", kind, format, len(lines), len(list.Items))
				}
			}
		}
	}
}

var dnsLabels = regexp.MustCompile(`^([A-Za-z0-9_*-]+\.)*$`)

// judgeDNS: names in answers are valid host names.
func (w *world) judgeDNS(t *testing.T) {
	client := &dns.Client{Net: "tcp", Timeout: time.Minute}
	conn, err := client.Dial(w.agent.dns)
	must(t, err)
	defer func() { _ = conn.Close() }()
	asked, wrong := 0, 0
	ask := func(name string, qtype uint16) {
		q := new(dns.Msg).SetQuestion(name, qtype)
		a, _, err := client.ExchangeWithConn(q, conn)
		if err != nil { // after a number of questions the server closes it
			_ = conn.Close()
			conn, err = client.Dial(w.agent.dns)
			must(t, err)
			a, _, err = client.ExchangeWithConn(q, conn)
		}
		if asked++; err != nil {
			t.Errorf("%s %s: %v", name, dns.TypeToString[qtype], err)
			return
		}
		for _, rr := range append(a.Answer, a.Extra...) {
			names := []string{rr.Header().Name}
			switch rr := rr.(type) {
			case *dns.SRV:
				names = append(names, rr.Target)
			case *dns.PTR:
				names = append(names, rr.Ptr)
			case *dns.OPT:
				continue
			}
			for _, n := range names {
				if !dnsLabels.MatchString(n) && n != name {
					if wrong++; wrong <= 5 {
						t.Errorf("%s %s has the name %.200q", name, dns.TypeToString[qtype], n)
					}
				}
			}
		}
	}
	for i := range numServices {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypeANY} {
			ask(fmt.Sprintf("svc%d.ns.svc.clusterset.local.", i), qtype)
		}
	}
	for i := 1; i <= len(shapes())*len(hostileTexts()); i++ {
		reverse, err := dns.ReverseAddr(net.IP(w.evil.evilAddr(i).AsSlice()).String())
		must(t, err)
		ask(reverse, dns.TypePTR)
		ask(fmt.Sprintf("evil-%d.ns.svc.clusterset.local.", i), dns.TypeSRV)
	}
	t.Logf("%d questions, %d names that are none", asked, wrong)
}

var promTarget = regexp.MustCompile(`^(\[[0-9a-f:.]+\]|[A-Za-z0-9_.-]+):[0-9]+$`)

// judgePrometheus: targets are addresses with labels, and the metrics can be read. No part of the agent has failed.
func (w *world) judgePrometheus(t *testing.T) {
	for _, path := range []string{"nodes?port=9100", "services", "endpoints"} {
		var groups []struct {
			Targets []string
			Labels  map[string]string
		}
		must(t, json.Unmarshal(w.body(t, "/v1/discovery/prometheus/"+path), &groups))
		wrong := 0
		for _, g := range groups {
			bad := ""
			for _, target := range g.Targets {
				if !promTarget.MatchString(target) {
					bad = target
				}
			}
			for name, value := range g.Labels {
				if !model.LegacyValidation.IsValidLabelName(name) || !utf8.ValidString(value) {
					bad = name + "=" + value
				}
			}
			if bad != "" {
				if wrong++; wrong <= 3 {
					t.Errorf("%s: %.200q", path, bad)
				}
			}
		}
		t.Logf("%s: %d groups, %d wrong", path, len(groups), wrong)
	}
	w.judgeMetrics(t)
}

// judgeMetrics: the metrics can be read, and count no internal error.
func (w *world) judgeMetrics(t testing.TB) {
	t.Helper()
	client := w.plain()
	defer client.CloseIdleConnections()
	resp, err := client.Get(w.url("/metrics"))
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	must(t, err)
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	must(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "mesh_agent_") {
			t.Logf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, m := range families["mesh_agent_internal_errors_total"].GetMetric() {
		if n := m.GetCounter().GetValue(); n > 0 {
			t.Errorf("internal errors of %s: %v\n%s", m.GetLabel(), n, w.agent.internalError())
		}
	}
}
