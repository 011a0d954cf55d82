package analysis_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// saboteur breaks the engine on one trajectory, whenever it is asked for, and the sandbox on one
// program: the first that runs after that.
type saboteur struct {
	stream uint64
	mu     sync.Mutex
	struck bool
	code   string
}

type brokenEngine struct {
	policy.Engine
	*saboteur
}

func (b brokenEngine) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	if slices.Contains(req.Streams, b.stream) {
		b.mu.Lock()
		b.struck = true
		b.mu.Unlock()
		panic("attention over no tokens")
	}
	return b.Engine.Generate(ctx, req)
}

type brokenSandbox struct {
	sandbox.Executor
	*saboteur
}

func (b brokenSandbox) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, err := b.Executor.Run(ctx, calls)
	if err != nil {
		return results, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	broken := make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		if b.struck && b.code == "" {
			b.code = c.Code
		}
		if b.struck && c.Code == b.code {
			results[i], broken[i] = sandbox.Result{}, errors.New("zygote is gone")
		}
	}
	if len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, nil
}

// A whole training goes on, and its record is whole, when the engine panics on one trajectory and
// the sandbox breaks on one program.
func TestTheRealPipelineWithBrokenTrajectories(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a tiny policy")
	}
	ctx, objects := context.Background(), mem.New()
	s := &saboteur{stream: seed.Derive(rollout.LabelSample, 1, 2, 5, 3, 0)} // of step 2, group 5, sample 3, turn 0
	trainForReal(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return brokenEngine{e, s} },
		Sandbox: func(e sandbox.Executor) sandbox.Executor { return brokenSandbox{e, s} },
	})
	require.True(t, s.struck)
	record := analysis.New(objects)
	v, err := verify.Run(ctx, record.Store(), "r")
	require.NoError(t, err)
	require.Empty(t, v.Faults)
	require.Equal(t, 3, v.Heads)

	overview, err := record.Overview(ctx, "r")
	require.NoError(t, err)
	require.Zero(t, overview.Steps[0].Excluded)
	excluded := overview.Steps[1].Excluded
	require.GreaterOrEqual(t, excluded, 2)
	require.Equal(t, 8*8-excluded, overview.Steps[1].Trajectories)
	figures, err := record.Figures(ctx, "r")
	require.NoError(t, err)
	require.EqualValues(t, 3*8*8, figures.Trajectories, "excluded ones are assembled")
	require.GreaterOrEqual(t, figures.Excluded, int64(excluded))

	view, err := record.Step(ctx, "r", 2, analysis.Choice{N: 64, Group: analysis.AnyGroup})
	require.NoError(t, err)
	reasons := map[string]int{}
	for _, e := range view.Episodes {
		if e.Selection.Excluded != nil {
			reasons[*e.Selection.Excluded]++
			require.Nil(t, e.Reward)
			require.Nil(t, e.Advantage)
		}
		if e.Selection.TrajectoryID == schema.TrajectoryID(2, 5, 3) {
			require.Equal(t, "engine: panicked: attention over no tokens", *e.Selection.Excluded)
		}
	}
	require.Equal(t, 1, reasons["engine: panicked: attention over no tokens"])
	require.Positive(t, reasons["sandbox: zygote is gone"])
}
