package activities_test

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/lanetest"
	"github.com/ropewalk/ropewalk/internal/python/pythontest"
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

// described is an engine that passes for another, so that it takes over the other's warm start.
type described struct {
	policy.Engine
	as policy.Description
}

func (d described) Describe() policy.Description { return d.as }

// TestUpdateAfterALostEngine: an update whose engine is lost is tried again by Temporal, on the same worker, and the run ends with
// the policy of one whose engine was not.
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
	t.Run("cpu", func(t *testing.T) {
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
	})
	t.Run("torch", func(t *testing.T) {
		exe, err := filepath.Abs(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"))
		require.NoError(t, err)
		e, err := torch.Open(t.Context(), torch.Options{Python: exe, Deterministic: true, Threads: 1, Dir: t.TempDir()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		want := train(t, func(own policy.Engine) policy.Engine { return described{e, own.Describe()} })
		d := &doomed{kill: func() policy.Engine {
			require.NoError(t, syscall.Kill(e.PID(), syscall.SIGKILL))
			return e
		}}
		got := train(t, func(own policy.Engine) policy.Engine {
			d.Engine = described{e, own.Describe()}
			return d
		})
		require.Greater(t, d.steps, 8, "an update was begun twice")
		require.Equal(t, 2, e.Usage().Starts)
		require.Equal(t, want, got)
	})
}

// revived makes a load the end of being lost.
type revived struct{ *doomed }

func (r revived) Load(ctx context.Context, role policy.Role, dir string, optimizer bool) error {
	if l, ok := r.doomed.Engine.(lostUntilLoad); ok {
		r.doomed.Engine = l.Engine
	}
	return r.doomed.Engine.Load(ctx, role, dir, optimizer)
}
