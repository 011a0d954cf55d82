package engine

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServe: a side answers each command with what it cost, and refuses what it does not know.
func TestServe(t *testing.T) {
	j := job{Threads: 2, Shape: sizes()[0].shape, Train: [2]int{2, 8}, Generate: [3]int{2, 3, 4}}
	var out bytes.Buffer
	require.NoError(t, serve(t.Context(), j, strings.NewReader(`"train"`+"\n"+`"generate"`+"\n"+`"train"`+"\n"), &out))
	answers := json.NewDecoder(&out)
	for range 3 {
		var c cost
		require.NoError(t, answers.Decode(&c))
		require.Positive(t, c.Seconds)
		require.Positive(t, c.CPU)
	}
	require.False(t, answers.More())
	require.ErrorContains(t, serve(t.Context(), j, strings.NewReader(`"sing"`), &out), `no such command: "sing"`)
}
