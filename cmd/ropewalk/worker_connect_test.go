package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
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
