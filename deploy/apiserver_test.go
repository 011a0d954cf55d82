package deploy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

// An API server admits every rendering of the chart, applied on the server's side with strict validation, first as a
// dry run and then for real. It fills in defaults and checks names, selectors, quantities and references between
// fields, which schemas cannot. No controller and no node is there, so nothing is scheduled. The short form applies the
// chart's default values alone.
func TestAPIServerAdmitsTheChart(t *testing.T) {
	if os.Getenv("ROPEWALK_TEST_APISERVER") == "" {
		t.Skip("needs an API server: make test-apiserver")
	}
	s := startAPIServer(t)
	for _, file := range customResources(t) {
		require.NoError(t, s.apply(t, file))
	}
	s.kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
	short := os.Getenv("ROPEWALK_APISERVER_SHORT") != ""
	for name, settings := range matrix {
		if short && name != "default" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			manifests, err := render(t, settings)
			require.NoError(t, err)
			namespace := "rl-" + name
			s.kubectl(t, "create", "namespace", namespace)
			s.kubectl(t, "label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted")
			file := writeManifests(t, manifests, namespace)
			require.NoError(t, s.apply(t, file, "--dry-run=server"))
			require.Empty(t, s.names(t, file, "--ignore-not-found"), "a dry run creates nothing")
			require.NoError(t, s.apply(t, file))
			require.Len(t, strings.Fields(s.names(t, file)), len(manifests))
			require.NoError(t, s.apply(t, file), "a second time")
		})
	}
	t.Run("refused", func(t *testing.T) {
		for _, wrong := range []struct {
			path  string
			value any
			says  string
		}{
			{"spec.template.spec.containers.0.resources.requests.memory", "much", "quantities must match"},
			{"spec.selector.matchLabels.other", "label", "selector"},
			{"spec.template.spec.containers.0.volumeMounts.0.name", "absent", "Not found"},
			{"spec.replica", 2, "field not declared in schema"},
			{"spec.template.spec.hostNetwork", true, "violate PodSecurity"},
		} {
			manifests, err := render(t, nil)
			require.NoError(t, err)
			for _, m := range manifests {
				if m["kind"] == "Deployment" {
					set(t, m, wrong.path, wrong.value)
					err := s.apply(t, writeManifests(t, []map[string]any{m}, "rl-default"), "--dry-run=server")
					require.ErrorContains(t, err, wrong.says, wrong.path)
					break
				}
			}
		}
	})
}

// apiServer is a Kubernetes API server with its database.
type apiServer struct {
	address, folder string
	client          string // the path of kubectl
}

// startAPIServer starts etcd and kube-apiserver on ports that are free, with a token that may do everything. The server
// warns of pods that do not meet the restricted security standard, which counts as an error.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	etcd, server := built(t, "etcd", "APISERVER"), built(t, "kube-apiserver", "APISERVER")
	s := &apiServer{folder: t.TempDir(), client: built(t, "kubectl", "APISERVER")}
	file := func(name, text string) string {
		path := filepath.Join(s.folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	database, peers := "http://"+freeAddress(t), "http://"+freeAddress(t)
	background(t, etcd, "--data-dir", filepath.Join(s.folder, "etcd"), "--listen-client-urls", database,
		"--advertise-client-urls", database, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default="+peers)

	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	key := file("key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(signer)})))
	token := rand.Text()
	s.address = freeAddress(t)
	host, port, err := net.SplitHostPort(s.address)
	require.NoError(t, err)
	background(t, server, "--etcd-servers", database, "--bind-address", host, "--secure-port", port, "--cert-dir",
		filepath.Join(s.folder, "certificates"), "--token-auth-file",
		file("tokens", token+",admin,admin,system:masters\n"), "--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.0.0.0/24", "--service-account-key-file", key,
		"--service-account-signing-key-file", key, "--service-account-issuer", "https://"+s.address,
		"--disable-admission-plugins", "ServiceAccount") // its controller would make the accounts
	file("config", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: here,
clusters: [{name: here, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}],
users: [{name: admin, user: {token: %s}}],
contexts: [{name: here, context: {cluster: here, user: admin}}]}`, s.address, token))
	const patience = 10 * time.Minute
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if _, err = s.try(t, "get", "--raw", "/readyz"); err == nil {
			return s
		}
		require.True(t, time.Now().Before(end), "the API server is not ready after %s: %v", patience, err)
	}
}

// background runs a program until the test ends.
func background(t *testing.T, line ...string) {
	t.Helper()
	said := &transcript.Transcript{}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()                          // killed
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(line[0]), said)
		}
	})
}

// freeAddress is a loopback address whose port nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// try runs kubectl.
func (s *apiServer) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.client, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.folder, "config"), "HOME="+s.folder)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, messages.String())
	}
	return out.String(), nil
}

func (s *apiServer) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.try(t, args...)
	require.NoError(t, err)
	return out
}

// apply applies a file on the server's side, where unknown fields are errors.
func (s *apiServer) apply(t *testing.T, file string, more ...string) error {
	t.Helper()
	_, err := s.try(t, append([]string{"apply", "--server-side", "--validate=strict",
		"--warnings-as-errors", "-f", file}, more...)...)
	return err
}

// names are those of a file's objects that are there, separated by spaces.
func (s *apiServer) names(t *testing.T, file string, more ...string) string {
	t.Helper()
	return s.kubectl(t, append([]string{"get", "-o", "name", "-f", file}, more...)...)
}

// writeManifests writes manifests of a namespace to a file.
func writeManifests(t *testing.T, manifests []map[string]any, namespace string) string {
	t.Helper()
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	for _, m := range manifests {
		m["metadata"].(map[string]any)["namespace"] = namespace
		require.NoError(t, encoder.Encode(m))
	}
	require.NoError(t, encoder.Close())
	path := filepath.Join(t.TempDir(), "manifests.yaml")
	require.NoError(t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

// set puts a value into a manifest, at a path whose parts are keys and numbers of elements.
func set(t *testing.T, manifest any, path string, value any) {
	t.Helper()
	for {
		key, rest, more := strings.Cut(path, ".")
		switch node := manifest.(type) {
		case map[string]any:
			if !more {
				node[key] = value
				return
			}
			manifest = node[key]
		case []any:
			var i int
			_, err := fmt.Sscan(key, &i)
			require.NoError(t, err, path)
			manifest = node[i]
		default:
			t.Fatalf("there is no %s", path)
		}
		path = rest
	}
}
