package schema

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// arrangesAsATree compares arrange with recode, which parses the text and writes the tree.
func arrangesAsATree(t *testing.T, v any) {
	t.Helper()
	compact, err := json.Marshal(v)
	require.NoError(t, err)
	want, err := recode(compact)
	require.NoError(t, err)
	got, err := arrange(compact)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s", compact)
}

func TestArrange(t *testing.T) {
	for _, v := range []any{
		nil, true, 0, -1.5e-9, 1e21, "", "a<b>&\u2028\x00\"\\/", "\xff", "é\U0001F600",
		[]any{}, []any{[]any{}, map[string]any{}}, []any{1, "x", nil, []any{2, []any{3}}},
		map[string]any{}, map[string]any{"b": 1, "a": map[string]any{"z": []any{}, "y": "}],{["}, "": nil},
		map[string]any{"a\"b": 1, "a!": 2, "a\\": 3, "a\u00e9": 4, "<": 5, ";": 6, "\n": 7},
		struct {
			B, A int
			C    map[string]string
			D    *int
			E    json.RawMessage
		}{C: map[string]string{"x": "y"}, E: json.RawMessage(` [ 1 , { "b" : 2 , "a" : "x y" , "b" : 3 } ] `)},
	} {
		arrangesAsATree(t, v)
	}
}

func FuzzArrange(f *testing.F) {
	f.Add([]byte(`{"b":[1,{"c":"\u003c","a":null}],"a\"":"x","a!":2e-3}`))
	f.Add([]byte(`"\ud800"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if json.Unmarshal(text, &v) == nil {
			arrangesAsATree(t, v)
		}
	})
}
