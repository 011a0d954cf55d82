package servers_test

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// A token goes to the server with every request and appears in no error, also when the server sends it back; a server
// whose certificate only the named authority vouches for is asked over TLS.
func TestTokenAndTLS(t *testing.T) {
	t.Setenv("SERVERS_TEST_TOKEN", "a-secret-token")
	a := newFake(t, servers.KindRopewalk)
	var denies atomic.Bool
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := r.Header.Get("Authorization"); token != "Bearer a-secret-token" || denies.Load() {
			http.Error(w, "no entry with "+token, http.StatusUnauthorized)
			return
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(secure.Close)
	file := filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: secure.Certificate().Raw}), 0o644))
	settings := a.settings()
	settings.URL, settings.Authorities, settings.Token = secure.URL, file, "${env:SERVERS_TEST_TOKEN}"
	s := open(t, settings)
	require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
	_, err := s.Generate(t.Context(), rows(3, 4))
	require.NoError(t, err)
	denies.Store(true)
	_, err = s.Generate(t.Context(), rows(3, 4))
	require.ErrorContains(t, err, "no entry with Bearer [secret]")
	require.NotContains(t, err.Error(), "a-secret-token")

	settings.Authorities = ""
	_, err = servers.Open(t.Context(), servers.Options{Servers: []servers.Server{settings}, Score: score})
	require.ErrorContains(t, err, "certificate")
	settings.Authorities = file + ".absent"
	_, err = servers.Open(t.Context(), servers.Options{Servers: []servers.Server{settings}, Score: score})
	require.ErrorContains(t, err, "authorities: the worker cannot read the file")
	settings.Token = "${env:SERVERS_TEST_ABSENT}"
	_, err = servers.Open(t.Context(), servers.Options{Servers: []servers.Server{settings}, Score: score})
	require.ErrorContains(t, err, "the worker has no such variable")
}

// IPv6 addresses work.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	a := newFake(t, servers.KindRopewalk)
	s := &http.Server{Handler: a}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	settings := a.settings()
	settings.URL = "http://" + l.Addr().String()
	require.Contains(t, settings.URL, "[::1]")
	sampler := open(t, settings)
	require.NoError(t, sampler.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
}

// The worker's proxy is used, as its variables say. They are read once in a process, so a process of its own asks.
func TestProxy(t *testing.T) {
	if address := os.Getenv("SERVERS_TEST_PROXIED"); address != "" {
		s, err := servers.Open(t.Context(), servers.Options{Servers: []servers.Server{{Kind: servers.KindRopewalk,
			URL: address, Folder: t.TempDir()}}, Score: score})
		require.NoError(t, err)
		require.NoError(t, s.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), false))
		return
	}
	a := newFake(t, servers.KindRopewalk)
	var asked atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		asked.Add(1)
		require.Equal(t, "inference.example:8000", r.In.URL.Host)
		to, _ := url.Parse(a.url)
		r.SetURL(to)
	}})
	t.Cleanup(proxy.Close)
	cmd := exec.Command(os.Args[0], "-test.run=^TestProxy$")
	cmd.Env = append(os.Environ(), "SERVERS_TEST_PROXIED=http://inference.example:8000", "HTTP_PROXY="+proxy.URL,
		"http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Positive(t, asked.Load())
}

// What no server can be asked with is refused by field.
func TestSettings(t *testing.T) {
	good := servers.Server{Kind: servers.KindVLLM, URL: "http://h:8000"}
	field, text := good.Fault()
	require.Empty(t, field+text)
	for want, change := range map[string]func(*servers.Server){
		"url: must be an address":                 func(s *servers.Server) { s.URL = "h:8000" },
		"url: must hold no user":                  func(s *servers.Server) { s.URL = "http://me:pw@h" },
		"token: must be a reference":              func(s *servers.Server) { s.Token = "sk-123456" },
		"folder: must be an absolute path":        func(s *servers.Server) { s.Folder = "weights" },
		"folder_there: must be an absolute":       func(s *servers.Server) { s.Folder, s.FolderThere = "/a", "b" },
		"folder_there: is another path of folder": func(s *servers.Server) { s.FolderThere = "/b" },
		"authorities: must be an absolute path":   func(s *servers.Server) { s.Authorities = "ca.pem" },
		"folder: has no use": func(s *servers.Server) {
			s.Kind, s.Model, s.Folder = "openai", "m", "/a"
		},
		"model: is required for kind openai":       func(s *servers.Server) { s.Kind = "openai" },
		"url: a reference to a secret is ${env:NA": func(s *servers.Server) { s.URL = "http://${x}" },
	} {
		s := good
		change(&s)
		field, text := s.Fault()
		require.True(t, strings.HasPrefix(field+": "+text, want), "%s: %s, want %s", field, text, want)
	}
}
