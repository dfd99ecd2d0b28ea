// Package kubetest gives real Kubernetes API servers to tests (kubernetes.md), each a process of its own over an etcd
// of its own (simtest/etcdtest, whose Main the package's TestMain must call). `make kubernetes` builds the program and
// runs the tests that use it; without it they are skipped.
//
// There is only an API server: no controller makes service accounts, EndpointSlices or endpoints, no scheduler places
// pods, no kubelet runs them. Tests write these objects themselves.
package kubetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/simtest/children"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/ports"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// Program is the environment variable with the path of kube-apiserver.
const Program = "KUBE_APISERVER"

// Admin is the token of a user who may do everything.
const Admin = "admin-token"

// Server is an API server. Its methods are for the test that started it.
type Server struct {
	// Etcd is the etcd of the server.
	Etcd *etcdtest.Process

	program string
	addr    string
	certs   *etcdtest.Certs
	dir     string // its own certificates, keys and log
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
}

// Start runs an API server until the end of the test and waits until it is ready.
func Start(t testing.TB) *Server {
	t.Helper()
	program := os.Getenv(Program)
	if program == "" {
		t.Skipf("no Kubernetes API server: run `make kubernetes`, or set %s to the path of kube-apiserver", Program)
	}
	port, err := ports.Reserve("127.0.0.1:0") // the server cannot choose a free one itself
	waittest.Must(t, err)
	t.Cleanup(port.Release)
	s := &Server{
		Etcd:    etcdtest.StartProcess(t),
		program: program,
		addr:    port.Addr(),
		certs:   etcdtest.NewCerts(t),
		dir:     t.TempDir(),
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	waittest.Must(t, err)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	s.write(t, "accounts.key", pem.EncodeToMemory(block))
	s.write(t, "tokens.csv", []byte(Admin+",admin,admin,system:masters\n"))
	t.Cleanup(s.stop)
	s.start(t)
	return s
}

func (s *Server) write(t testing.TB, name string, data []byte) {
	t.Helper()
	waittest.Must(t, os.WriteFile(filepath.Join(s.dir, name), data, 0o600))
}

func (s *Server) args() []string {
	_, port, _ := net.SplitHostPort(s.addr)
	file := func(name string) string { return filepath.Join(s.dir, name) }
	return []string{
		"--etcd-servers=" + s.Etcd.Endpoint(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--tls-cert-file=" + s.certs.ServerCert, "--tls-private-key-file=" + s.certs.ServerKey,
		"--cert-dir=" + s.dir,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("accounts.key"),
		"--service-account-signing-key-file=" + file("accounts.key"),
		"--token-auth-file=" + file("tokens.csv"),
		"--authorization-mode=RBAC",
		// It would require a service account in each namespace, which a controller would create.
		"--disable-admission-plugins=ServiceAccount",
	}
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	waittest.Must(t, err)
	defer log.Close()
	cmd := exec.Command(s.program, s.args()...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOGC=400") // a tenth of the work of its start
	cmd.SysProcAttr = children.Attributes()    // a test that times out does no cleanup
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", s.program, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.cmd, s.ended = cmd, ended
	client, err := rest.HTTPClientFor(s.Config(Admin))
	waittest.Must(t, err)
	defer client.CloseIdleConnections()
	waittest.Try(t, s.program+" to be ready", func() error {
		select {
		case <-s.ended:
			t.Fatalf("%s has ended:\n%s", s.program, s.Log())
		default:
		}
		return ready(t.Context(), client, "https://"+s.addr+"/readyz")
	}, s.Log)
}

func ready(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz: %s", resp.Status)
	}
	return nil
}

// Log is the end of the server's log.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(text, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}

// Addr is where the server listens, "127.0.0.1:12345". It stays the same over restarts.
func (s *Server) Addr() string { return s.addr }

// Kill ends the process with SIGKILL and waits for it.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.cmd == nil {
		t.Fatal("kill: the API server is not running")
	}
	s.stop()
}

// Restart runs the server again on the same data, killing it first if it runs.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.stop()
	s.start(t)
}

func (s *Server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
}

// Config returns the configuration of a client with a bearer token.
func (s *Server) Config(token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + s.addr, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: s.certs.CAFile},
		QPS: -1, WarningHandler: rest.NoWarnings{},
	}
}

// Client returns a client for objects of every kind, as the administrator.
func (s *Server) Client(t testing.TB) *dynamic.DynamicClient {
	t.Helper()
	config := s.Config(Admin)
	client, err := rest.HTTPClientFor(config)
	waittest.Must(t, err)
	t.Cleanup(client.CloseIdleConnections)
	c, err := dynamic.NewForConfigAndClient(config, client)
	waittest.Must(t, err)
	return c
}

// Kubeconfig writes a kubeconfig file for the server at an address, its own or that of a gate in front of it, with a
// bearer token. It returns the path.
func (s *Server) Kubeconfig(t testing.TB, addr, token string) string {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context: {cluster: test, user: test}
clusters:
- name: test
  cluster: {server: "https://%s", certificate-authority: %q}
users:
- name: test
  user: {token: %q}
`, addr, s.certs.CAFile, token)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	waittest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Apply creates objects from YAML, or changes existing ones, as the administrator. It also applies the status of kinds
// that have it as a subresource.
func (s *Server) Apply(t testing.TB, texts ...string) {
	t.Helper()
	client := s.Client(t)
	for _, text := range texts {
		o, in := parse(t, client, text)
		apply(t, in, o)
		switch o.GetKind() {
		case "Node", "Pod", "Service":
			if o.Object["status"] != nil {
				apply(t, in, o, "status")
			}
		}
	}
}

// apply retries while the definition of a kind is too new.
func apply(t testing.TB, in dynamic.ResourceInterface, o *unstructured.Unstructured, subresources ...string) {
	t.Helper()
	waittest.Try(t, "the kind "+o.GetKind(), func() error {
		_, err := in.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}, subresources...)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return err
	})
}

// Delete deletes objects at once; it takes their names from YAML. It also finalizes a
// namespace, because no namespace controller runs here.
func (s *Server) Delete(t testing.TB, texts ...string) {
	t.Helper()
	client := s.Client(t)
	for _, text := range texts {
		o, in := parse(t, client, text)
		err := in.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err == nil && o.GetKind() == "Namespace" {
			_, err = in.Update(t.Context(), o, metav1.UpdateOptions{}, "finalize")
		}
		if err != nil {
			t.Fatalf("delete %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// Token returns a token of a service account, valid for an hour.
func (s *Server) Token(t testing.TB, namespace, account string) string {
	t.Helper()
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"name": account}, "spec": map[string]any{"expirationSeconds": int64(3600)},
	}}
	accounts := s.Client(t).Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(namespace)
	granted, err := accounts.Create(t.Context(), request, metav1.CreateOptions{}, "token")
	if err != nil {
		t.Fatalf("a token of %s/%s: %v", namespace, account, err)
	}
	token, _, err := unstructured.NestedString(granted.Object, "status", "token")
	if err != nil || token == "" {
		t.Fatalf("no token of %s/%s in %v: %v", namespace, account, granted.Object, err)
	}
	return token
}

// parse reads an object and returns it with the client for its resource, whose name is the plural of its kind.
func parse(t testing.TB, client dynamic.Interface, text string) (*unstructured.Unstructured, dynamic.ResourceInterface) {
	t.Helper()
	o := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return o, client.Resource(plural).Namespace(o.GetNamespace())
}
