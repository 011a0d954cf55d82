package recipes

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// upToDate compares a committed file with the generated content, or rewrites the file with -update.
func upToDate(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, want, 0o644))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s is stale; run go test ./recipes -update", file)
}

func TestSchemaIsUpToDate(t *testing.T) { upToDate(t, "schema.json", Schema()) }

// compiled returns the published schema, read by an independent implementation.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schemaID, doc))
	s, err := c.Compile(schemaID)
	require.NoError(t, err)
	return s
}

// instance turns YAML into the plain values that the validator reads.
func instance(t *testing.T, text []byte) any {
	t.Helper()
	var x any
	require.NoError(t, yaml.Unmarshal(text, &x))
	data, err := json.Marshal(textKeys(x))
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return v
}

// textKeys converts the keys of mappings to text, as in JSON.
func textKeys(x any) any {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			x[k] = textKeys(v)
		}
	case map[any]any:
		out := object{}
		for k, v := range x {
			out[fmt.Sprint(k)] = textKeys(v)
		}
		return out
	}
	return x
}

func TestSchemaAcceptsShippedRecipes(t *testing.T) {
	s := compiled(t)
	for _, name := range Builtin() {
		text, ok := Source(name)
		require.True(t, ok)
		require.NoError(t, s.Validate(instance(t, text)), name)
		r, err := Resolve(name, "", nil, nil, nil)
		require.NoError(t, err)
		require.NoError(t, s.Validate(instance(t, r.JSON)), "resolved %s", name)
	}
}

// The schema and Parse reject the same faults of single fields.
func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	s := compiled(t)
	for _, c := range badFields {
		t.Run(c.name, func(t *testing.T) {
			if c.yamlOnly {
				t.Skip("JSON cannot say it")
			}
			require.Error(t, s.Validate(instance(t, []byte(c.recipe()))))
		})
	}
}
