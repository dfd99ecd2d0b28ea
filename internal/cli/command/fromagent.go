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

// settingsTimeout is the time limit for the request of an agent's settings.
const settingsTimeout = 3 * time.Second

// ResolveFromAgent is [Env.Resolve] for a command that checks the configuration of an agent on this machine. When the
// mesh directory is not given, it takes the directory and the other missing flags from an agent that answers on its
// socket, and writes a line about that. Only the socket serves settings. Without an agent, the defaults are used.
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
	cfg, taken := s.FromAgent(settings, place, flags...)
	switch {
	case len(taken) > 0:
		Note(cmd.ErrOrStderr(), fmt.Sprintf("From %s: %s", place, strings.Join(taken, ", ")))
	case settings[config.DirectoryFlag] != cfg.ClustermeshConfig:
		Note(cmd.ErrOrStderr(), fmt.Sprintf("The mesh directory of %s is not on this machine: %s. Checking %s; --%s chooses another one",
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
