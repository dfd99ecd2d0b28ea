package browser

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/chromedp/chromedp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"

	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// TestXDSClient: a gRPC program that connects to a service by xDS is in the view of the servers until it ends, with its
// names, which are links to the service.
func TestXDSClient(t *testing.T) {
	w := newWorld(t, three()...)
	w.publish("london", "shop", "fresh", "10.1.9.1")
	p := w.open()
	p.visit("#/servers", "Servers")
	p.untilText("main", "No client is connected.")

	bootstrap, err := xdsserver.Bootstrap{Address: "unix:" + w.xds, Node: "checkout-7"}.GRPC()
	must(t, err)
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	must(t, err)
	conn, err := grpc.NewClient("xds:///shop/fresh:http", grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer conn.Close()
	conn.Connect()
	const again = `[...document.querySelectorAll("main button")].find((b) => b.textContent === "Read again").click(), `
	p.until("the client", again+`document.querySelector("main").innerText.includes("checkout-7")`)
	p.until("its endpoints are confirmed", again+`[...document.querySelectorAll("main li")].some((l) => /[Ee]ndpoint/.test(l.textContent) && l.textContent.includes("confirmed") && !l.textContent.includes("not confirmed"))`)
	p.audit("servers with a client")
	p.until("a link to the service", `!!document.querySelector("main li a[href='#/services/shop/fresh']")`)

	must(t, conn.Close())
	p.until("the client has gone", again+`document.querySelector("main").innerText.includes("No client is connected.")`)
}

// TestOverTLS: the page works over HTTPS, directly from the agent. The browser accepts only the certificate of the agent.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	ca, err := pki.NewCA("mesh")
	must(t, err)
	pair, err := ca.Server([]string{"127.0.0.1"})
	must(t, err)
	cert, key, err := pair.Write(t.TempDir(), "agent")
	must(t, err)
	block, _ := pem.Decode(pair.Cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	pin := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)

	w := newWorld(t, three()...)
	w.agent.Stop()
	api := programtest.Reserve(t)
	w.flags = []string{"--cluster-name", "home", "--listen", api, "--tls-cert-file", cert, "--tls-key-file", key}
	w.start()
	p := openPage(t, "https://"+api+"/ui/", chromedp.Flag("ignore-certificate-errors-spki-list", base64.StdEncoding.EncodeToString(pin[:])))
	p.visit("#/", "Mesh")
	p.untilText(".summary", "3 clusters are healthy")
	must(t, w.cluster("paris").Kill())
	p.untilText(".summary", "1 of 3 clusters needs attention")
	must(t, w.cluster("paris").Start(t.Context()))
	p.untilText(".summary", "3 clusters are healthy")
}
