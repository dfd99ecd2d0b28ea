package programtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
)

// Prometheus is a running Prometheus.
type Prometheus struct{ Address string }

// StartPrometheus runs Prometheus until the end of the test, with a configuration that is written to a directory.
func StartPrometheus(t testing.TB, dir, config string) *Prometheus {
	t.Helper()
	program, p := Find(t, "consumers", "prometheus"), &Prometheus{Reserve(t)}
	file := Write(t, dir, "prometheus.yml", config)
	Start(t, exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+p.Address), syscall.SIGTERM)
	return p
}

// Get sends a request to its API.
func (p *Prometheus) Get(path string, data any) error {
	resp, err := http.Get("http://" + p.Address + "/api/v1/" + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}
