package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/lanetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// doomed is an engine that is lost in an update, when its second optimiser step is due.
type doomed struct {
	policy.Engine
	kill  func() (after policy.Engine) // loses the engine; what calls reach from then on
	steps int
}

func (d *doomed) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	if d.steps++; d.steps == 2 {
		d.Engine = d.kill()
	}
	return d.Engine.Step(ctx, role, o)
}

// lostUntilLoad is what an engine is that has been lost: nothing until it is loaded anew.
type lostUntilLoad struct{ policy.Engine }

func (lostUntilLoad) Step(context.Context, policy.Role, policy.StepOptions) (policy.StepStats, error) {
	return policy.StepStats{}, policy.ErrLost
}

func (lostUntilLoad) Discard(context.Context, policy.Role) error { return policy.ErrLost }

// TestUpdateAfterALostEngine: an update whose engine is lost is tried again by Temporal, on the same worker, and the run ends with
// the policy of one whose engine was not. (That the PyTorch engine is lost and found so is gpu/torch's to show.)
func TestUpdateAfterALostEngine(t *testing.T) {
	train := func(t *testing.T, trainer func(policy.Engine) policy.Engine) string {
		t.Helper()
		objects := mem.New()
		b := &bench{store: objects, record: commit.New(objects), deps: lanetest.Deps(t, objects, lanetest.Wrap{Trainer: trainer})}
		// The warm start is that of the run before, so that whatever steps is an update.
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

// revived makes a load the end of being lost.
type revived struct{ *doomed }

func (r revived) Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	if l, ok := r.doomed.Engine.(lostUntilLoad); ok {
		r.doomed.Engine = l.Engine
	}
	return r.doomed.Engine.Load(ctx, role, dir, optimizer)
}
