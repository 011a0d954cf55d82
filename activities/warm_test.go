package activities_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// warmStarts are the warm starts that tests have made. They depend only on their inputs and are stored under the
// inputs' digest, so a test of something else can reuse them. (TestTrainingIsAFunctionOfItsInputs checks this
// dependence and shares none.)
var warmStarts = struct {
	sync.Mutex
	objects map[string][]byte
}{objects: map[string][]byte{}}

// lendWarmStarts puts the warm starts of earlier tests into a store, as if one of its runs had made them.
func lendWarmStarts(t *testing.T, to store.Store) {
	t.Helper()
	warmStarts.Lock()
	defer warmStarts.Unlock()
	for key, data := range warmStarts.objects {
		require.NoError(t, to.Put(t.Context(), key, data))
	}
}

// keepWarmStarts keeps the warm starts that a run has made.
func keepWarmStarts(t *testing.T, from store.Store) {
	t.Helper()
	warmStarts.Lock()
	defer warmStarts.Unlock()
	for _, key := range keys(t, from) {
		if !strings.HasPrefix(key, "warmstarts/") || schema.IsNote(key) || warmStarts.objects[key] != nil {
			continue
		}
		data, err := from.Get(t.Context(), key)
		require.NoError(t, err)
		warmStarts.objects[key] = data
	}
}
