package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// watching is a sandbox that calls see before the calls of tools.
type watching struct {
	sandbox.Executor
	see func()
}

func (w watching) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if calls[0].Packages != sandbox.PackagesSympy {
		w.see()
	}
	return w.Executor.Run(ctx, calls)
}

// Where episodes go on turn by turn, heartbeats say after each turn how far they are, and how many have calls in
// flight.
func TestHeartbeatsTurnByTurn(t *testing.T) {
	b := verifiers(t, sums(t), false)
	p := &stage.Progress{}
	state := func() api.ShardState {
		details := p.Details()
		require.Greater(t, len(details), 2)
		return details[2].(api.ShardState)
	}
	var calling, last []api.ShardState
	b.deps.Execution.Sandbox = watching{b.sandbox, func() { calling = append(calling, state()) }}
	b.engine.last = func(context.Context) error {
		last = append(last, state())
		return nil
	}
	_, err := do(b.stepBench, func(ctx context.Context, _ *stage.Env, in api.EpisodesInput) (out api.Episodes,
		err error) {
		r := &stage.Runner{Context: ctx, Worker: b.deps, Env: &stage.Env{Progress: p}, Own: &api.Timing{}}
		defer r.Env.Use()()
		if err := episodes.Open(ctx, b.deps, in, r.Env); err != nil {
			return out, err
		}
		return out, step.Shard.Body(r, &in, &out)
	}, api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 20,
		Needs: stages.Needs{Grade: true}})
	require.NoError(t, err)

	first := calling[0]
	all := first.Episodes
	require.Positive(t, first.Finished, "some answer at once")
	require.EqualValues(t, all-first.Finished, first.Calls, "the others call")
	require.EqualValues(t, all, first.Turns)
	require.Positive(t, first.TokensPerSec)
	end := last[len(last)-1]
	require.Equal(t, []any{all, first.Finished, int64(0)}, []any{end.Episodes, end.Finished, end.Calls})
	require.EqualValues(t, all+(all-first.Finished), end.Turns)
	require.Len(t, p.Details(), 2)
}
