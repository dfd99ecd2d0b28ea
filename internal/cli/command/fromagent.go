package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// settingsTimeout is how long an agent of this machine may take to say what its settings are.
const settingsTimeout = 3 * time.Second

// ResolveFromAgent is [Env.Resolve] for a command that checks what an agent of this machine uses: when the mesh directory is not
// given, an agent that answers on its socket gives it, with the other flags that are not given, and a line says so. Only the
// socket tells settings. Without an agent the defaults stay.
func (c *Env) ResolveFromAgent(cmd *cobra.Command, s *config.Settings, flags ...string) (config.Config, error) {
	cfg, err := c.Resolve(cmd, s)
	if err != nil || s.Given(config.DirectoryFlag) || c.Server != "" {
		return cfg, err
	}
	socket := cmp.Or(c.Socket, c.DefaultSocket, api.DefaultSocket)
	settings, err := settingsOf(cmd.Context(), socket)
	if err != nil {
		return cfg, nil //nolint:nilerr // no agent, or one that does not say: the defaults are as good as ever
	}
	place := "the agent at " + socket
	cfg, taken, err := s.FromAgent(settings, place, flags...)
	switch {
	case err != nil:
		return cfg, err
	case len(taken) > 0:
		Tell(cmd.ErrOrStderr(), fmt.Sprintf("From %s: %s", place, strings.Join(taken, ", ")))
	case settings[config.DirectoryFlag] != cfg.ClustermeshConfig:
		Tell(cmd.ErrOrStderr(), fmt.Sprintf("The mesh directory of %s is not on this machine: %s. Checking %s; --%s chooses another one",
			place, settings[config.DirectoryFlag], cfg.ClustermeshConfig, config.DirectoryFlag))
	}
	return cfg, nil
}

func settingsOf(ctx context.Context, socket string) (api.Settings, error) {
	cl, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	settings, err := client.Get[api.Settings](ctx, cl, "v1", "debug", "config")
	if err != nil {
		return nil, err
	}
	return *settings, nil
}
