package setup

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store/s3"
)

// A real server with versions gets versioning, a lock and a policy. None is lowered or replaced afterwards.
func TestVersionsLockAndPolicyOnARealServer(t *testing.T) {
	server := storetest.VersitygwWith(t, storetest.Setup{Versions: true,
		Accounts: map[string]string{"r": "secret-4711"}})
	s, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: "ropewalk", AccessKey: server.AccessKey,
		SecretKey: server.SecretKey})
	require.NoError(t, err)
	policy := func(action string) string {
		return `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["r"]},
			"Action": ["` + action + `"], "Resource": ["arn:aws:s3:::ropewalk/*"]}]}`
	}
	of := func(o StoreOptions) map[string]State {
		t.Helper()
		f, err := OfStore(t.Context(), s, o)
		require.NoError(t, err)
		return states(f)
	}
	o := StoreOptions{LockDays: 7, Policy: policy("s3:GetObject")}
	before := of(o)
	require.Equal(t, Missing, before[lockFinding])
	require.Equal(t, Missing, before[policyFinding])
	require.NoError(t, CreateStore(t.Context(), s, o))
	for _, same := range []StoreOptions{o, {LockDays: 3, Policy: o.Policy}} {
		got := of(same)
		require.Equal(t, OK, got["versioning"])
		require.Equal(t, OK, got[lockFinding])
		require.Equal(t, OK, got[policyFinding])
	}
	require.NotContains(t, of(StoreOptions{}), policyFinding)

	require.Equal(t, Conflict, of(StoreOptions{Policy: policy("s3:PutObject")})[policyFinding])
	o.LockDays = 30
	require.Equal(t, Missing, of(o)[lockFinding], "it can be raised")
	require.NoError(t, CreateStore(t.Context(), s, o))
	b, err := s.Bucket(t.Context())
	require.NoError(t, err)
	require.Equal(t, s3.Lock{Mode: "GOVERNANCE", Days: 30}, b.Lock)
}

func TestAServerWithoutLocks(t *testing.T) {
	f, err := OfStore(t.Context(), open(t, &bucketServer{exists: true, versioned: true}), StoreOptions{LockDays: 1})
	require.NoError(t, err)
	require.Equal(t, Conflict, states(f)[lockFinding])
}
