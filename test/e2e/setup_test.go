package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/setup"
	"github.com/ropewalk/ropewalk/store/storetest"
)

// prepared is what `ropewalk setup temporal --json` prints.
type prepared struct {
	Server        string
	Before, After setup.Findings
	Ready         bool
}

// setUp runs a set-up, whose output must be one JSON object.
func (h *home) setUp(t *testing.T, code int, args ...string) (p prepared, messages string) {
	t.Helper()
	r := h.run(t, slices.Concat([]string{"setup"}, args, []string{"--json"})...)
	require.Equal(t, code, r.code, "%s\n%s", r.out, r.err)
	require.NoError(t, json.Unmarshal([]byte(r.out), &p), "%s\n%s", r.out, r.err)
	require.Equal(t, code == 0, p.Ready)
	return p, r.err
}

// states maps what was compared to its state.
func states(f setup.Findings) map[string]setup.State {
	out := map[string]setup.State{}
	for _, one := range f {
		out[one.What] = one.State
	}
	return out
}

// A server that has nothing is compared, prepared, and needs nothing afterwards.
func TestSetUpTemporal(t *testing.T) {
	t.Parallel()
	address := temporalServer(t)
	h := newHome(t, t.TempDir(), "TEMPORAL_ADDRESS="+address)
	for range 2 { // a dry run changes nothing
		dry, messages := h.setUp(t, 1, "temporal", "--dry-run")
		require.Equal(t, "Temporal at "+address, dry.Server)
		require.Contains(t, messages, "is not ready")
		require.Nil(t, dry.After)
		got := states(dry.Before)
		for _, what := range []string{"namespace ropewalk", "retention", "search attribute RunID"} {
			require.Equal(t, setup.Missing, got[what], what)
		}
		require.Equal(t, setup.Note, got["queue gpu"])
	}
	made, _ := h.setUp(t, 0, "temporal")
	require.Equal(t, setup.OK, states(made.After)["search attribute RunStarted"])
	require.False(t, made.After.Has(setup.Missing, setup.Conflict))
	again, _ := h.setUp(t, 0, "temporal", "--dry-run")
	require.Equal(t, made.After, again.Before)

	// Another namespace is created when it is asked for by name.
	other := newHome(t, t.TempDir(), "TEMPORAL_ADDRESS="+address, "TEMPORAL_NAMESPACE=team")
	other.setUp(t, 0, "temporal")
	table := other.run(t, "setup", "temporal", "--dry-run").ok(t)
	require.Contains(t, table.out, "namespace team ")
}

// A search attribute of another type is left to its owner, and nothing is created next to it.
func TestSetUpTemporalLeavesConflicts(t *testing.T) {
	t.Parallel()
	address := temporalServer(t)
	c, err := client.Dial(client.Options{HostPort: address})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: "default", SearchAttributes: map[string]enumspb.IndexedValueType{
			"Step": enumspb.INDEXED_VALUE_TYPE_KEYWORD}})
	require.NoError(t, err)
	h := newHome(t, t.TempDir(), "TEMPORAL_ADDRESS="+address, "TEMPORAL_NAMESPACE=default")
	eventually(t, func() bool {
		return strings.Contains(h.run(t, "setup", "temporal", "--dry-run").out, "conflict")
	}, "the server to show the attribute")
	p, _ := h.setUp(t, 1, "temporal")
	require.Equal(t, setup.Conflict, states(p.After)["search attribute Step"])
	require.Equal(t, setup.Missing, states(p.After)["search attribute RunID"])
}

// The connection takes client certificates from Temporal's own configuration; without one the server refuses.
func TestSetUpTemporalByClientCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	address := ca.guard(t, temporalServer(t))
	dir := t.TempDir()
	cert, key := ca.issue(t, dir, "worker")
	secured := []string{"TEMPORAL_ADDRESS=" + address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.file(t, dir)}
	refused := newHome(t, t.TempDir(), secured...).run(t, "setup", "temporal")
	require.NotEqual(t, 0, refused.code)
	require.Contains(t, refused.err, "does not answer as a Temporal server")
	h := newHome(t, t.TempDir(), append(secured, "TEMPORAL_TLS_CLIENT_CERT_PATH="+cert,
		"TEMPORAL_TLS_CLIENT_KEY_PATH="+key)...)
	h.setUp(t, 0, "temporal")
}

// A bucket is created on a real server, which has neither versions nor lifecycle rules.
func TestSetUpStore(t *testing.T) {
	t.Parallel()
	needServers(t)
	h := newHome(t, t.TempDir(), awsEnv(storetest.Versitygw(t))...)
	dry, _ := h.setUp(t, 1, "store", "--dry-run")
	require.Equal(t, setup.Missing, states(dry.Before)["bucket"])
	made, _ := h.setUp(t, 0, "store")
	require.Equal(t, setup.Missing, states(made.Before)["bucket"])
	require.Equal(t, setup.OK, states(made.After)["bucket"])
	require.Equal(t, setup.OK, states(made.After)["conditional puts"])
	h.setUp(t, 0, "store", "--dry-run")
	refused := h.run(t, "setup", "store", "--keep-deleted", "30")
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.err, "the server does not support it: leave --keep-deleted and --lock out")
	for _, bad := range []struct{ flag, value, err string }{
		{"--keep-deleted", "-1", "--keep-deleted is -1, it must be at least 0"},
		{"--lock", "-1", "--lock is -1, it must be at least 0"},
		{"--policy", "absent.json", "--policy: open absent.json"},
		{"--policy", "/dev/null", "--policy /dev/null: is not JSON"},
	} {
		r := h.run(t, "setup", "store", bad.flag, bad.value)
		require.Equal(t, 2, r.code, r.err)
		require.Contains(t, r.err, bad.err)
	}
}

// authority makes certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{cert, key}
}

// file writes the authority's certificate.
func (a authority) file(t *testing.T, dir string) string {
	t.Helper()
	return writePEM(t, filepath.Join(dir, "ca.pem"), "CERTIFICATE", a.cert.Raw)
}

// issue writes a certificate for 127.0.0.1, for servers and clients, and its key.
func (a authority) issue(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return writePEM(t, filepath.Join(dir, name+".pem"), "CERTIFICATE", der),
		writePEM(t, filepath.Join(dir, name+".key"), "EC PRIVATE KEY", secret)
}

func writePEM(t *testing.T, path, kind string, der []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// guard puts TLS that demands a certificate of the authority in front of a server.
func (a authority) guard(t *testing.T, server string) (address string) {
	t.Helper()
	cert, key := a.issue(t, t.TempDir(), "server")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair},
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"},
		MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go relay(from, server)
			}
		}
	}()
	return listener.Addr().String()
}

// relay copies bytes in both directions until one side ends.
func relay(from net.Conn, server string) {
	defer from.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, from); to.Close() }()
	_, _ = io.Copy(from, to)
}
