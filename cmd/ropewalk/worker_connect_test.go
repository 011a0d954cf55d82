package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/store"
)

// A worker that cannot begin says what is missing and how to get it.
func TestWorkerRefusals(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL",
		"AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	require.Equal(t, `ropewalk: --queues: there is no queue "sandbx"; did you mean sandbox?`,
		refused(t, "worker", "--queues", "cpu,sandbx"))
	require.Equal(t, `ropewalk: --queues: there is no queue "x"; there are cpu, rollout, sandbox, gpu`,
		refused(t, "worker", "--queues", "x"))
	require.Equal(t, "ropewalk: read S3 settings: environment variable AWS_ACCESS_KEY_ID is not set\na worker "+
		"connects to the servers that the environment names; for those of the running local stack: env "+
		"$(ropewalk env) ropewalk worker", refused(t, "worker"))
}

// A worker polls the namespace that commands use.
func TestWorkerNamespace(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	conf, err := temporalconf.Load("")
	require.NoError(t, err)
	for _, c := range []struct{ given, want string }{{"", conf.Namespace}, {"mine", "mine"}} {
		t.Setenv("TEMPORAL_NAMESPACE", c.given)
		options, err := temporalOptions(conf)
		require.NoError(t, err)
		require.Equal(t, c.want, options.Namespace)
	}
}

// A worker that starts asks a server again whose connection breaks, and gives up in the end; other errors end it at
// once.
func TestWorkersPersist(t *testing.T) {
	pauses := startPauses
	startPauses = []time.Duration{0, 0}
	t.Cleanup(func() { startPauses = pauses })
	away := fmt.Errorf("put: %w", store.ErrUnreachable)
	for _, c := range []struct {
		errs  []error
		asked int
		want  error
	}{
		{[]error{nil}, 1, nil},
		{[]error{away, serviceerror.NewUnavailable("broken"), nil}, 3, nil},
		{[]error{away, away, away, nil}, 3, store.ErrUnreachable},
		{[]error{store.ErrNoBucket, nil}, 1, store.ErrNoBucket},
	} {
		asked := 0
		err := persist(t.Context(), func() error { asked++; return c.errs[asked-1] })
		require.ErrorIs(t, err, c.want)
		require.Equal(t, c.asked, asked)
	}
}
