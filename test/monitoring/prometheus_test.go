package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var folder = filepath.Join("..", "..", "deploy", "monitoring")

// hurry makes rules that fire within seconds, for a Prometheus that scrapes each second: five minutes
// of "for" become one second, and windows, in expressions, are a thirtieth: ten seconds for five minutes.
func hurry(rules string) string {
	seconds := func(text, unit string) int {
		n, _ := strconv.Atoi(text)
		return n * map[string]int{"m": 60, "h": 3600}[unit]
	}
	duration := regexp.MustCompile(`(for: |\[|offset )(\d+)([mh])`)
	return duration.ReplaceAllStringFunc(rules, func(found string) string {
		part := duration.FindStringSubmatch(found)
		divided := seconds(part[2], part[3]) / 30
		if part[1] == "for: " {
			divided /= 10
		}
		return fmt.Sprintf("%s%ds", part[1], divided)
	})
}

// target is a process that Prometheus scrapes.
type target struct{ job, address string }

// secure is the prefix of the address of a target with TLS.
const secure = "https://"

// prometheus is a running Prometheus with the rules of deploy/monitoring. The label cluster of its targets is "home".
type prometheus struct {
	*programtest.Prometheus
	t       *testing.T
	targets string
}

func startPrometheus(t *testing.T, targets ...target) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile(filepath.Join(folder, "rules.yaml"))
	must(t, err)
	p := &prometheus{t: t, targets: filepath.Join(dir, "targets.json")}
	programtest.Write(t, dir, "rules.yaml", hurry(string(rules)))
	p.scrape(targets...)
	p.Prometheus = programtest.StartPrometheus(t, dir, `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: all
  tls_config: {insecure_skip_verify: true}
  file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
`)
	return p
}

// scrape makes these the targets.
func (p *prometheus) scrape(targets ...target) {
	p.t.Helper()
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	all := []group{}
	for _, t := range targets {
		labels := map[string]string{"job": t.job, "cluster": "home"}
		address, is := strings.CutPrefix(t.address, secure)
		if is {
			labels["__scheme__"] = "https"
		}
		all = append(all, group{[]string{address}, labels})
	}
	text, err := json.Marshal(all)
	must(p.t, err)
	next := programtest.Write(p.t, filepath.Dir(p.targets), "next", string(text))
	must(p.t, os.Rename(next, p.targets))
}

// values are the present results of an expression.
func (p *prometheus) values(expression string) (all []float64, err error) {
	var answer struct{ Result []struct{ Value [2]any } }
	err = p.Get("query?query="+url.QueryEscape(expression), &answer)
	for _, r := range answer.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, err
}

// firing are the firing alerts, each with its subject: "NAME CLUSTER", or another label that distinguishes it from
// others of its name.
func (p *prometheus) firing() (all map[string]bool, err error) {
	var answer struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	err = p.Get("alerts", &answer)
	all = make(map[string]bool)
	for _, a := range answer.Alerts {
		if a.State != "firing" {
			continue
		}
		name := a.Labels["alertname"]
		for _, label := range []string{"target_cluster", "kind", "name", "limit", "reason", "type"} {
			if value := a.Labels[label]; value != "" {
				name += " " + value
				break
			}
		}
		all[name] = true
	}
	return all, err
}

// fire waits until all of these fire at the same time.
func (p *prometheus) fire(want ...string) {
	p.t.Helper()
	waittest.Try(p.t, "alerts to fire", func() error {
		now, err := p.firing()
		lacking := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return now[name] })
		if err == nil && len(lacking) > 0 {
			err = fmt.Errorf("lacking are %q, firing %q", lacking, slices.Sorted(maps.Keys(now)))
		}
		return err
	})
}

// resolve waits until no alert fires.
func (p *prometheus) resolve() {
	p.t.Helper()
	waittest.Try(p.t, "all alerts to resolve", func() error {
		now, err := p.firing()
		if err == nil && len(now) > 0 {
			err = fmt.Errorf("firing are %q", slices.Sorted(maps.Keys(now)))
		}
		return err
	})
}

// scraped waits until n processes are scraped, and no alert fires.
func (p *prometheus) scraped(n int) {
	p.t.Helper()
	waittest.Try(p.t, "processes to be scraped", func() error {
		up, err := p.values(`sum(up)`)
		if err == nil && (len(up) != 1 || up[0] != float64(n)) {
			err = fmt.Errorf("%v are up", up)
		}
		return err
	})
	p.resolve()
}

// counts waits until an expression is above zero.
func (p *prometheus) counts(expression string) {
	p.t.Helper()
	waittest.Try(p.t, expression, func() error {
		all, err := p.values(expression)
		if err == nil && (len(all) == 0 || all[0] <= 0) {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
}

// TestRules runs the tests of the rules with Prometheus' own tool.
func TestRules(t *testing.T) {
	t.Parallel()
	tool := programtest.Find(t, "consumers", "promtool")
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
