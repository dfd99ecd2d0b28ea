package xds

import (
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
)

// The clients that a bootstrap is for.
const (
	forGRPC  = "grpc"
	forEnvoy = "envoy"
)

func bootstrapCommand(c *command.Env) *cobra.Command {
	var (
		b   xdsserver.Bootstrap
		who string
	)
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print the bootstrap configuration of a gRPC program or an Envoy",
		Long: "Print the bootstrap configuration of a gRPC program, which reads the file that GRPC_XDS_BOOTSTRAP names, or of an Envoy\n" +
			"(docs/xds.md). Without --address the command asks the running agent for its xDS address.",
		Example: "  mesh-agent xds bootstrap > xds.json\n  GRPC_XDS_BOOTSTRAP=xds.json ./program   # which dials xds:///shop/cart:http\n" +
			"  mesh-agent xds bootstrap --for envoy --address unix:/run/mesh-agent/xds.sock > envoy.json",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{forGRPC, forEnvoy}, who) {
				return exit.Usagef("--for: %q is neither %s nor %s", who, forGRPC, forEnvoy)
			}
			return served(c, cmd, &b, func() error { return writeFor(cmd, b, who) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&who, "for", forGRPC, "kind of client: "+forGRPC+" or "+forEnvoy)
	f.StringVar(&b.Zone, "client-zone", "", "zone of the client, for information; the agent uses its own zone")
	serverFlags(cmd, &b)
	_ = cmd.RegisterFlagCompletionFunc("for", command.Complete(func(*cobra.Command, []string) []string { return []string{forEnvoy, forGRPC} })) // the flag is there
	return cmd
}

// serverFlags adds the flags of the server's address, and of the client's ID and certificates.
func serverFlags(cmd *cobra.Command, b *xdsserver.Bootstrap) {
	name, _ := os.Hostname() // an empty ID is valid, too
	f := cmd.Flags()
	f.StringVar(&b.Address, "address", "", "xDS address of the agent: HOST:PORT or unix:PATH; default: the running agent reports it")
	f.StringVar(&b.Node, "node-id", name, "ID of the client, which 'mesh-agent xds clients' shows")
	f.BoolVar(&b.TLS, "tls", false, "use TLS; for an agent with a certificate (--tls-cert-file)")
	f.StringVar(&b.CA, "ca-file", "", "certificate authorities for the agent's certificate; default: those of the system")
	f.StringVar(&b.Cert, "cert-file", "", "client certificate for the agent")
	f.StringVar(&b.Key, "key-file", "", "key of the client certificate")
}

// check validates the flags, which may contradict each other, and sets TLS when they require it.
func check(b *xdsserver.Bootstrap) error {
	if (b.Cert == "") != (b.Key == "") {
		return exit.Usagef("--cert-file and --key-file are given together")
	}
	b.TLS = b.TLS || b.CA != "" || b.Cert != ""
	if b.Address == "" || strings.HasPrefix(b.Address, "unix:") {
		return nil
	}
	if _, port, err := net.SplitHostPort(b.Address); err != nil || port == "" {
		return exit.Usagef("--address: %q is neither HOST:PORT nor unix:PATH", b.Address)
	}
	return nil
}

func writeFor(cmd *cobra.Command, b xdsserver.Bootstrap, who string) error {
	text, err := b.GRPC()
	if who == forEnvoy {
		text, err = b.Envoy()
	}
	if err != nil {
		return exit.Usagef("--address: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
