package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// doomed is an engine that is lost during an update, at its second optimiser step.
type doomed struct {
	policy.Engine
	kill  func() (after policy.Engine) // loses the engine and returns the engine that later calls reach
	steps int
}

func (d *doomed) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	if d.steps++; d.steps == 2 {
		d.Engine = d.kill()
	}
	return d.Engine.Step(ctx, role, o)
}

// lostUntilLoad is a lost engine: every call fails until it is loaded again.
type lostUntilLoad struct{ policy.Engine }

func (lostUntilLoad) Step(context.Context, policy.Role, policy.StepOptions) (policy.StepStats, error) {
	return policy.StepStats{}, policy.ErrLost
}

func (lostUntilLoad) Discard(context.Context, policy.Role) error { return policy.ErrLost }

// TestUpdateAfterALostEngine: Temporal retries an update whose engine is lost, on the same worker. The run ends with
// the same policy as a run whose engine was not lost. (The tests of gpu/torch show that the PyTorch engine reports
// its loss in this way.)
func TestUpdateAfterALostEngine(t *testing.T) {
	train := func(t *testing.T, trainer func(policy.Engine) policy.Engine) string {
		t.Helper()
		objects := mem.New()
		b := &bench{store: objects, record: commit.New(objects),
			deps: pipelinetest.Deps(t, objects, pipelinetest.Wrap{Trainer: trainer})}
		// The warm start is that of the previous run, so every optimiser step belongs to an update.
		out := trainTiny(t, b, "r", "steps=2", "optimizer.minibatches=2", "optimizer.epochs=2")
		require.Len(t, stepRows[schema.UpdateRow](t, objects, "r", 1, schema.StageUpdate), 4)
		return out.Policy.Digest
	}
	want := train(t, nil)
	var d *doomed
	got := train(t, func(e policy.Engine) policy.Engine {
		d = &doomed{Engine: e}
		d.kill = func() policy.Engine {
			again, err := cpu.Open(cpu.Options{Threads: 2})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, again.Close()) })
			return lostUntilLoad{again}
		}
		return revived{d}
	})
	require.Greater(t, d.steps, 8, "an update was begun twice")
	require.Equal(t, want, got)
}

// revived makes a load bring the lost engine back.
type revived struct{ *doomed }

func (r revived) Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	if l, ok := r.doomed.Engine.(lostUntilLoad); ok {
		r.doomed.Engine = l.Engine
	}
	return r.doomed.Engine.Load(ctx, role, dir, optimizer)
}
