package activities_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store"
)

// warmStarts are those that tests have made. They follow from their inputs, under whose digest they lie, so
// that a test that is about something else takes them as they are. (That they do follow from them is
// TestTrainingIsAFunctionOfItsInputs, which shares none.)
var warmStarts = struct {
	sync.Mutex
	objects map[string][]byte
}{objects: map[string][]byte{}}

// lendWarmStarts puts the warm starts of earlier tests into a store, as if a run of it had made them.
func lendWarmStarts(t *testing.T, to store.Store) {
	t.Helper()
	warmStarts.Lock()
	defer warmStarts.Unlock()
	for key, data := range warmStarts.objects {
		require.NoError(t, to.Put(t.Context(), key, data))
	}
}

// keepWarmStarts takes over what a run has made.
func keepWarmStarts(t *testing.T, from store.Store) {
	t.Helper()
	warmStarts.Lock()
	defer warmStarts.Unlock()
	for _, key := range keys(t, from) {
		if !strings.HasPrefix(key, "warmstarts/") || warmStarts.objects[key] != nil {
			continue
		}
		data, err := from.Get(t.Context(), key)
		require.NoError(t, err)
		warmStarts.objects[key] = data
	}
}
