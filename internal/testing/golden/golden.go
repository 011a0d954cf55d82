// Package golden compares the output of tests with files that a person has read and found correct.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// Check compares text with the file testdata/name of the test's package. If update is set (the test's flag -update), it
// writes the file first.
func Check(t *testing.T, name, text string, update bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if d := cmp.Diff(string(want), text); d != "" {
		t.Errorf("%s: -want +got:\n%s", path, d)
	}
}

// Schema compiles a JSON schema of the tree, which documents in tests are compared with.
func Schema(t testing.TB, path string) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return Compile(t, path, data)
}

// Compile compiles a JSON schema. name is for messages.
func Compile(t testing.TB, name string, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err, name)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(name, doc))
	s, err := c.Compile(name)
	require.NoError(t, err)
	return s
}
