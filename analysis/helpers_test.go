package analysis_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func verified(t *testing.T, objects store.Store) verify.Report {
	t.Helper()
	v, err := verify.Run(context.Background(), objects, "r")
	require.NoError(t, err)
	return v
}

// kinds are the faults as "kind key", in order.
func kinds(v verify.Report) []string {
	out := []string{}
	for _, f := range v.Faults {
		out = append(out, string(f.Kind)+" "+f.Key)
	}
	return out
}

func get(t *testing.T, objects store.Store, key string) []byte {
	t.Helper()
	data, err := objects.Get(context.Background(), key)
	require.NoError(t, err)
	return data
}

func put(t *testing.T, objects store.Store, key string, data []byte) {
	t.Helper()
	require.NoError(t, objects.Put(context.Background(), key, data))
}

// copyOf is a store with the same objects.
func copyOf(t *testing.T, objects *mem.Store) *mem.Store {
	t.Helper()
	listed, err := objects.List(context.Background(), "")
	require.NoError(t, err)
	out := mem.New()
	for _, o := range listed {
		put(t, out, o.Key, get(t, objects, o.Key))
	}
	return out
}

// forge changes a manifest as an attacker with write access to the bucket could: it stays valid.
func forge(t *testing.T, objects store.Store, place schema.Place, change func(m *schema.Manifest)) string {
	t.Helper()
	key := place.ManifestKey()
	m, err := schema.DecodeManifest(get(t, objects, key))
	require.NoError(t, err)
	change(&m)
	data, err := schema.EncodeManifest(m)
	require.NoError(t, err)
	put(t, objects, key, data)
	return key
}

// forgeResult changes the result that an evaluation's manifest states.
