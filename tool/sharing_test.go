package tool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/tool"
)

// slowEcho answers with its arguments when it is released.
type slowEcho struct {
	spec    tool.Spec
	release chan struct{}
	ran     atomic.Int64
	breaks  atomic.Bool
}

func (s *slowEcho) Spec() tool.Spec { return s.spec }

func (s *slowEcho) Run(_ context.Context, calls []tool.Call) ([]tool.Result, error) {
	<-s.release
	s.ran.Add(int64(len(calls)))
	if s.breaks.Load() {
		return nil, errors.New("broken")
	}
	out := make([]tool.Result, len(calls))
	for i, c := range calls {
		out[i] = tool.Result{Status: tool.OK, Stdout: string(c.Arguments), Timing: tool.Timing{Wall: 1}}
	}
	return out, nil
}

func calls(arguments ...string) (out []tool.Call) {
	for _, a := range arguments {
		out = append(out, tool.Call{Tool: "echo", Name: "echo", Arguments: []byte(a)})
	}
	return out
}

func TestSharing(t *testing.T) {
	echo := &slowEcho{spec: tool.Spec{Name: "echo", Repeat: tool.Pure}, release: make(chan struct{})}
	box := tool.Sharing(tool.Toolbox{echo})
	var group sync.WaitGroup
	var shared atomic.Int64
	for range 8 {
		group.Go(func() {
			got, err := box.RunEach(t.Context(), calls("1", "2", "1"), nil)
			require.NoError(t, err)
			for i, want := range []string{"1", "2", "1"} {
				require.Equal(t, want, got[i].Stdout)
				if got[i].Timing.Shared {
					require.Zero(t, got[i].Timing.Wall)
					shared.Add(1)
				}
			}
		})
	}
	close(echo.release)
	group.Wait()
	require.EqualValues(t, 2, echo.ran.Load(), "each distinct call once")
	require.EqualValues(t, 22, shared.Load())

	// What broke is not shared, and runs again.
	echo.breaks.Store(true)
	_, err := box.RunEach(t.Context(), calls("3"), nil)
	require.Error(t, err)
	echo.breaks.Store(false)
	got, err := box.RunEach(t.Context(), calls("3"), nil)
	require.NoError(t, err)
	require.Equal(t, "3", got[0].Stdout)

	for _, s := range []tool.Spec{{Name: "echo", Repeat: tool.Sandboxed, Stateful: true},
		{Name: "echo", Repeat: tool.AtMostOnce}, {Name: "echo", Repeat: tool.Keyed}} {
		other := &slowEcho{spec: s, release: echo.release}
		require.Equal(t, tool.Toolbox{other}, tool.Sharing(tool.Toolbox{other}))
	}
}
