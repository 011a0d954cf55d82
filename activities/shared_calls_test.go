package activities

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// timed says that every call took 5 ms.
type timed struct{ printer }

func (p *timed) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, err := p.printer.Run(ctx, calls)
	for i := range results {
		results[i].Timing = sandbox.Timing{Wall: 5 * time.Millisecond, CPU: time.Millisecond}
	}
	return results, err
}

// paired makes every second call identical to the one before it.
type paired struct{ sandbox.Executor }

func (p paired) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	for i := 1; i < len(calls); i += 2 {
		calls[i].Code, calls[i].Stdin = calls[i-1].Code, calls[i-1].Stdin
	}
	return p.Executor.Run(ctx, calls)
}

// Identical calls run once. The rows of the others have no duration, so that no mean over calls counts a duration of 0.
func TestCallsThatSharedAnExecutionHaveNoDuration(t *testing.T) {
	b, _ := callingBench(t, paired{sandbox.NewOnce(&timed{printer{nth: -1}})})
	tools, _ := b.shard()
	_, ref, found, err := b.deps.Record.Lookup(t.Context(),
		schema.At("r", 1, "timings_calls").WithTurn(0).WithShard(0))
	require.NoError(t, err)
	require.True(t, found)
	ran, shared := 0, 0
	for _, r := range rowsAt[schema.TimingRow](b, ref) {
		seconds, ok := r.Seconds()
		if r.Shared != nil {
			shared++
			require.False(t, ok)
			require.Zero(t, r.CPUSeconds)
			continue
		}
		ran++
		require.True(t, ok)
		require.InDelta(t, 0.005, seconds, 1e-6)
	}
	require.Equal(t, tools.Calls/2, shared)
	require.Equal(t, tools.Calls-shared, ran)
}
