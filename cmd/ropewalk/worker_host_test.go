package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/internal/testing/authority"
)

func TestHostOfAWorker(t *testing.T) {
	t.Setenv(hostVariable, "")
	t.Setenv(addressVariable, "")
	o := workerOptions{updateDevices: 1}
	require.NoError(t, o.checkHost())
	require.NoError(t, o.findAddress("127.0.0.1:7233"))
	require.NotEmpty(t, o.host)
	require.Equal(t, "127.0.0.1", o.address, "the way to the server is this host's own")

	t.Setenv(hostVariable, "node-7")
	o = workerOptions{updateDevices: 1}
	require.NoError(t, o.checkHost())
	require.Equal(t, "node-7", o.host)
	o = workerOptions{updateDevices: 1, host: "b", address: "127.0.0.1"}
	require.NoError(t, o.checkHost())
	require.Equal(t, "b", o.host, "the flag goes first")

	for want, o := range map[string]workerOptions{
		"--host, ROPEWALK_HOST: must match": {updateDevices: 1, host: "a b"},
		"--update-devices is 0":             {host: "a"},
		"--host-address, ROPEWALK_HOST_ADDRESS: must be an IP address": {updateDevices: 1, host: "a",
			address: "gpu7.example"},
		"--host-address, ROPEWALK_HOST_ADDRESS: no network interface of this h": {updateDevices: 1, host: "a",
			address: "192.0.2.1"},
	} {
		err := o.checkHost()
		var bad badinput.Error
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, want)
	}
}

// What no worker can do is refused before a server is asked: there is none here.
func TestAWorkersFlagsAreCheckedFirst(t *testing.T) {
	for _, name := range []string{"TEMPORAL_ADDRESS", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "127.0.0.1:1")
	}
	for want, o := range map[string]workerOptions{
		"--update-devices is 0":             {sessions: 1, host: "a", cache: -1},
		"--host, ROPEWALK_HOST: must match": {sessions: 1, updateDevices: 1, host: "a b", cache: -1},
		"--cache-mb is":                     {sessions: 1, updateDevices: 1, host: "a", cache: 1 << 30},
	} {
		require.ErrorContains(t, o.run(t.Context(), &console{err: io.Discard}), want)
	}
}

// Certificates for other hosts come from flags or variables, all three or none, and are read at the start.
func TestHostTLSOfAWorker(t *testing.T) {
	ca, err := authority.New(t.TempDir())
	require.NoError(t, err)
	pair, err := ca.Issue("a")
	require.NoError(t, err)
	for _, name := range []string{hostCertVariable, hostKeyVariable, hostAuthorityVariable} {
		t.Setenv(name, "")
	}
	o := workerOptions{}
	require.NoError(t, o.checkHostTLS())
	require.False(t, o.hostTLS.On())
	refused := func(o workerOptions, want string) {
		t.Helper()
		err := o.checkHostTLS()
		var bad badinput.Error
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, want)
	}
	refused(workerOptions{hostTLS: gang.TLS{Cert: pair.Cert, Key: pair.Key}}, "--host-tls-ca (ROPEWALK_HOST_TLS_CERT")
	refused(workerOptions{hostTLS: gang.TLS{Cert: pair.Cert, Key: pair.Key, CA: pair.Key}}, "holds no PEM certificate")
	t.Setenv(hostCertVariable, pair.Cert)
	t.Setenv(hostKeyVariable, "absent")
	t.Setenv(hostAuthorityVariable, ca.File)
	refused(workerOptions{}, "open absent")
	o = workerOptions{hostTLS: gang.TLS{Key: pair.Key}}
	require.NoError(t, o.checkHostTLS(), "the flag goes first")
	require.Equal(t, gang.TLS{Cert: pair.Cert, Key: pair.Key, CA: ca.File}, o.hostTLS)
}

// The number of updates at once follows from the devices; a worker that polls gpu also polls its host's queue.
func TestQueuesOfAWorker(t *testing.T) {
	conf, err := temporalconf.Default()
	require.NoError(t, err)
	activities := func(o workerOptions, devices int) map[string]int {
		out := map[string]int{}
		for _, q := range o.queuesOf(conf, devices) {
			out[q.Name] = q.MaxConcurrentActivities
		}
		return out
	}
	require.Equal(t, map[string]int{"cpu": 4, "rollout": 4, "sandbox": 2, "gpu": 1, "gpu.a": hostStages},
		activities(workerOptions{host: "a", updateDevices: 1}, 0))
	require.Equal(t, map[string]int{"rollout": 8, "gpu": 8, "gpu.a": hostStages},
		activities(workerOptions{host: "a", updateDevices: 1, queues: []string{"gpu", "rollout"}}, 8))
	require.Equal(t, map[string]int{"gpu": 2, "gpu.a": hostStages},
		activities(workerOptions{host: "a", updateDevices: 4, queues: []string{"gpu"}}, 8))
	require.Equal(t, map[string]int{"gpu": 1, "gpu.a": hostStages},
		activities(workerOptions{host: "a", updateDevices: 8, queues: []string{"gpu"}}, 7))
	require.Equal(t, map[string]int{"sandbox": 2},
		activities(workerOptions{host: "a", updateDevices: 1, queues: []string{"sandbox"}}, 8))
	require.True(t, workerOptions{queues: []string{"rollout", "sandbox"}}.generates())
	require.False(t, workerOptions{queues: []string{"sandbox"}}.generates())
	require.Empty(t, workerOptions{host: "a", queues: []string{"sandbox"}}.homeOf())
	require.Equal(t, "a", workerOptions{host: "a"}.homeOf())
}
