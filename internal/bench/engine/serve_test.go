package engine

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServe: a side answers each command with the seconds that it took, and refuses what it does not know.
func TestServe(t *testing.T) {
	j := job{Threads: 2, Shape: sizes()[0].shape, Train: [2]int{2, 8}, Generate: [3]int{2, 3, 4}}
	var out bytes.Buffer
	require.NoError(t, serve(t.Context(), j, strings.NewReader(`"train"`+"\n"+`"generate"`+"\n"+`"train"`+"\n"), &out))
	answers := json.NewDecoder(&out)
	for range 3 {
		var seconds float64
		require.NoError(t, answers.Decode(&seconds))
		require.Positive(t, seconds)
	}
	require.False(t, answers.More())
	require.ErrorContains(t, serve(t.Context(), j, strings.NewReader(`"sing"`), &out), `no such command: "sing"`)
}
