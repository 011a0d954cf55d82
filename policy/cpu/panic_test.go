package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// A part that panics in its own goroutine panics in the caller's, who can catch it; the engine is
// then free for the next call, whose result is what it always was.
func TestAPanicReachesTheCaller(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, checkpoint.Init(dir, tiny, 11, map[string][]byte{"tokenizer.json": []byte("{}")}))
	e, err := open[float32](Options{Threads: 2, BLAS: blasGonum})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	req := policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: [][]int32{{1, 2}, {3}, {1, 2, 3}}, Streams: []uint64{1, 2, 3},
		MaxTokens: []int{5, 5, 5}, Temperature: 1,
	}
	want, err := e.Generate(t.Context(), req)
	require.NoError(t, err)

	broken := e.roles[policy.RolePolicy].workers[1]
	matrix := broken.mm
	broken.mm = nil
	err = rescue.Do(func() error {
		_, err := e.Generate(t.Context(), req)
		return err
	})
	require.ErrorContains(t, err, "panicked: runtime error")
	require.Contains(t, rescue.Stack(err), "prefill.go", "the stack is that of the part")

	broken.mm = matrix
	got, err := e.Generate(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
