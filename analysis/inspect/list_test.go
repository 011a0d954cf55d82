package inspect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/inspect"
)

// A JSON list and JSON lines are what imports store; they are shown, and are not damage.
func TestList(t *testing.T) {
	for name, text := range map[string]string{
		"list.json": `[{"a": 1}, {"a": 2}, {"a": 3}]`, "list": " [{\"a\": 1},\n{\"a\": 2}, 3]",
		"lines.jsonl": "{\"a\": 1}\n{\"a\": 2}\n\n{\"a\": 3}\n", "lines.json": `{"a": 1} {"a": 2} {"a": 3}`,
	} {
		f, err := inspect.Inspect(name, []byte(text), 2)
		require.NoError(t, err, name)
		require.Equal(t, inspect.KindList, f.Kind)
		require.Equal(t, 3, f.List.Items)
		require.Len(t, f.List.First, 2)
		require.JSONEq(t, `{"a": 2}`, string(f.List.First[1]))
		var b strings.Builder
		require.NoError(t, f.WriteText(&b))
		require.Contains(t, b.String(), "items    3\n\n{\n  \"a\": 1\n}\n")
	}
	f, err := inspect.Inspect("empty.json", []byte("[]"), 2)
	require.NoError(t, err)
	require.Zero(t, f.List.Items)
	f, err = inspect.Inspect("one.json", []byte(`{"a": 1}`), 2)
	require.NoError(t, err)
	require.Equal(t, inspect.KindDocument, f.Kind)
}
