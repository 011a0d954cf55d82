package golden

import (
	"bytes"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

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
