package commit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestProgramsAreNotedOnce(t *testing.T) {
	objects := mem.New()
	p := schema.Program{Version: "v1.2.3", Go: "go1.26", Platform: "linux/amd64", Code: "c0de"}
	require.NoError(t, commit.PutProgram(t.Context(), objects, p))
	p.Version = "v9"
	require.NoError(t, commit.PutProgram(t.Context(), objects, p), "another worker of the same program")
	text, err := objects.Get(t.Context(), "format/programs/c0de.json")
	require.NoError(t, err)
	require.JSONEq(t, `{"version": "v1.2.3", "modified": false, "go": "go1.26", "platform": "linux/amd64",
		"code": "c0de"}`, string(text))
}

func TestABucketHoldsTheSpecificationOfItsFormat(t *testing.T) {
	objects := faults.New(mem.New())
	require.NoError(t, commit.PutSpecification(t.Context(), objects))
	require.Len(t, schema.Specification(), 4)
	for key, text := range schema.Specification() {
		there, err := objects.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, string(text), string(there))
		require.Equal(t, 1, objects.Count(faults.Put, key))
	}
	require.NoError(t, commit.PutSpecification(t.Context(), objects))
	for key, text := range schema.Specification() {
		require.Equal(t, 1, objects.Count(faults.Put, key), "the same text is not put again")
		require.NoError(t, objects.Put(t.Context(), key, []byte("an earlier text")))
		require.NoError(t, commit.PutSpecification(t.Context(), objects))
		there, err := objects.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, string(text), string(there))
	}
}
