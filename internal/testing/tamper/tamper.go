// Package tamper changes the objects of a record, as an attacker with write access to the bucket could, and says which
// faults the record then has.
package tamper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// Verify verifies the run r.
func Verify(t *testing.T, objects store.Store) verify.Report {
	t.Helper()
	v, err := verify.Run(t.Context(), objects, "r")
	require.NoError(t, err)
	return v
}

// Faults are the faults as "kind key", in order.
func Faults(v verify.Report) []string {
	out := []string{}
	for _, f := range v.Faults {
		out = append(out, string(f.Kind)+" "+f.Key)
	}
	return out
}

// Get returns the bytes of an object.
func Get(t *testing.T, objects store.Store, key string) []byte {
	t.Helper()
	data, err := objects.Get(t.Context(), key)
	require.NoError(t, err)
	return data
}

// Put replaces an object.
func Put(t *testing.T, objects store.Store, key string, data []byte) {
	t.Helper()
	require.NoError(t, objects.Put(t.Context(), key, data))
}

// Copy returns a store with the same objects.
func Copy(t *testing.T, objects *mem.Store) *mem.Store {
	t.Helper()
	listed, err := objects.List(t.Context(), "")
	require.NoError(t, err)
	out := mem.New()
	for _, o := range listed {
		Put(t, out, o.Key, Get(t, objects, o.Key))
	}
	return out
}

// Manifest changes a manifest, which stays valid, and returns its key.
func Manifest(t *testing.T, objects store.Store, place schema.Place, change func(m *schema.Manifest)) string {
	t.Helper()
	key := place.ManifestKey()
	m, err := schema.DecodeManifest(Get(t, objects, key))
	require.NoError(t, err)
	change(&m)
	data, err := schema.EncodeManifest(m)
	require.NoError(t, err)
	Put(t, objects, key, data)
	return key
}
