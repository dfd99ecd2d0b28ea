package agent_test

import (
	"net/http"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// TestPage: the API's listener serves the page, unless it is turned off.
func TestPage(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]int{"true": http.StatusOK, "false": http.StatusNotFound} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			a, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": t.TempDir(), "ui": flag})
			response, err := agenttest.UnixClient(a.Socket).Get("http://agent/ui/")
			agenttest.Must(t, err)
			agenttest.Must(t, response.Body.Close())
			if response.StatusCode != want {
				t.Errorf("--ui=%s: %s", flag, response.Status)
			}
		})
	}
}
