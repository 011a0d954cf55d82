package e2e

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ropewalk/ropewalk/internal/setup"
	"github.com/ropewalk/ropewalk/internal/testing/authority"
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

// A namespace that does not exist is compared and prepared, because it is asked for by name, and needs nothing
// afterwards.
func TestSetUpTemporal(t *testing.T) {
	needs(t, sharedStack)
	h := newHome(t, t.TempDir(), append(slices.Clone(shared.servers), "TEMPORAL_NAMESPACE=team")...)
	for range 2 { // a dry run changes nothing
		dry, messages := h.setUp(t, 1, "temporal", "--dry-run")
		require.Equal(t, "Temporal at "+variable(shared.servers, "TEMPORAL_ADDRESS"), dry.Server)
		require.Contains(t, messages, "is not ready")
		require.Nil(t, dry.After)
		got := states(dry.Before)
		for _, what := range []string{"namespace team", "retention", "search attribute RunID"} {
			require.Equal(t, setup.Missing, got[what], what)
		}
		require.Equal(t, setup.Note, got["queue gpu"])
	}
	made, _ := h.setUp(t, 0, "temporal")
	require.Equal(t, setup.OK, states(made.After)["search attribute RunStarted"])
	require.False(t, made.After.Has(setup.Missing, setup.Conflict))
	again, _ := h.setUp(t, 0, "temporal", "--dry-run")
	require.Equal(t, made.After, again.Before)
	require.Contains(t, h.run(t, "setup", "temporal", "--dry-run").ok(t).out, "namespace team ")
}

// A search attribute of another type is left to its owner, and nothing is created next to it.
func TestSetUpTemporalLeavesConflicts(t *testing.T) {
	stack, _ := needs(t, sharedStack)
	const namespace = "conflicts"
	c := stack.dial(t)
	_, err := c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(30 * 24 * time.Hour)})
	require.NoError(t, err)
	eventually(t, func() bool { // servers cache the list of namespaces
		_, err = c.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
			Namespace: namespace, SearchAttributes: map[string]enumspb.IndexedValueType{
				"Step": enumspb.INDEXED_VALUE_TYPE_KEYWORD}})
		return err == nil
	}, "the server to know the namespace")
	h := newHome(t, t.TempDir(), append(slices.Clone(shared.servers), "TEMPORAL_NAMESPACE="+namespace)...)
	eventually(t, func() bool {
		return strings.Contains(h.run(t, "setup", "temporal", "--dry-run").out, "conflict")
	}, "the server to show the attribute")
	p, _ := h.setUp(t, 1, "temporal")
	require.Equal(t, setup.Conflict, states(p.After)["search attribute Step"])
	require.Equal(t, setup.Missing, states(p.After)["search attribute RunID"])
}

// The connection takes client certificates from Temporal's own configuration; without one the server refuses.
func TestSetUpTemporalByClientCertificate(t *testing.T) {
	needs(t, sharedStack)
	ca := newAuthority(t)
	address := guard(t, ca, variable(shared.servers, "TEMPORAL_ADDRESS"))
	worker := issue(t, ca, "worker")
	secured := []string{"TEMPORAL_ADDRESS=" + address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.File}
	refused := newHome(t, t.TempDir(), secured...).run(t, "setup", "temporal")
	require.NotEqual(t, 0, refused.code)
	require.Contains(t, refused.err, "does not answer as a Temporal server")
	h := newHome(t, t.TempDir(), append(secured, "TEMPORAL_TLS_CLIENT_CERT_PATH="+worker.Cert,
		"TEMPORAL_TLS_CLIENT_KEY_PATH="+worker.Key)...)
	h.setUp(t, 0, "temporal")
}

// A bucket is created on a real server, which has neither versions nor lifecycle rules.
func TestSetUpStore(t *testing.T) {
	needs(t, sharedStack)
	h := newHome(t, t.TempDir(), append(slices.Clone(shared.servers), "ROPEWALK_S3_BUCKET=setup")...)
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

// issue issues a certificate for 127.0.0.1.
func issue(t *testing.T, a *authority.Authority, name string) authority.Pair {
	t.Helper()
	pair, err := a.Issue(name, "127.0.0.1")
	require.NoError(t, err)
	return pair
}

func newAuthority(t *testing.T) *authority.Authority {
	t.Helper()
	a, err := authority.New(t.TempDir())
	require.NoError(t, err)
	return a
}

// guard puts TLS that demands a certificate of the authority in front of a server.
func guard(t *testing.T, a *authority.Authority, server string) (address string) {
	t.Helper()
	secure, err := a.Client(issue(t, a, "server"))
	require.NoError(t, err)
	secure.ClientCAs, secure.ClientAuth, secure.NextProtos = secure.RootCAs, tls.RequireAndVerifyClientCert,
		[]string{"h2"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", secure)
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
