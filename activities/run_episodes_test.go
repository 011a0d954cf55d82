package activities

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// counting is a sandbox that counts how often each call ran.
type counting struct {
	printer
	mu  sync.Mutex
	ran map[string]int // by trace
}

func (c *counting) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range calls {
		c.ran[call.Trace]++
	}
	return c.printer.Run(ctx, calls)
}

// episodesBench is a step whose policy follows a script, for RunEpisodes.
type episodesBench struct {
	*turnsBench
	sandbox *counting
}

func episodesOf(t *testing.T, turns int, settings ...string) *episodesBench {
	b := &episodesBench{turnsBench: scriptedTurns(t, turns, settings...), sandbox: &counting{printer: printer{nth: -1},
		ran: map[string]int{}}}
	b.on(b.deps.Store)
	return b
}

// on switches to another worker on a store.
func (b *episodesBench) on(objects store.Store) {
	b.t.Helper()
	deps, err := New(stage.Options{Store: objects, Trainer: b.engine, Rollout: b.engine, Sandbox: b.sandbox,
		Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	published(deps, b.policy.Digest)
	b.deps, b.engine.deps = deps, deps
}

func (b *episodesBench) input() api.EpisodesInput {
	return api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 20}
}

func (b *episodesBench) run() (api.Episodes, error) {
	return do(b.stepBench, episodes.RunEpisodes{Worker: b.deps}.Execute, b.input())
}

// A worker dies before each of the shard's commits in turn. The last attempt ends with the manifests of an undisturbed
// one, and no call runs again whose result was committed.
func TestEpisodesGoOnAfterKills(t *testing.T) {
	plain := episodesOf(t, 3)
	want, err := plain.run()
	require.NoError(t, err)

	b := episodesOf(t, 3)
	objects := b.deps.Store
	for _, place := range []string{"rollout/turn=0", "sandbox/turn=0", "rollout/turn=1", "sandbox/turn=1",
		"rollout/turn=2", "sandbox/turn=2", "rollout/turn=3", "assemble", "reward"} {
		b.on(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place}))
		_, err := b.run()
		require.ErrorContains(t, err, faults.ErrInjected.Error(), place)
	}
	b.on(objects)
	got, err := b.run()
	require.NoError(t, err)
	require.Equal(t, want.Assembled, got.Assembled)
	require.Equal(t, want.Scored.Manifest, got.Scored.Manifest)
	for trace, times := range b.sandbox.ran {
		require.LessOrEqual(t, times, 2, "call %s: only the attempt that could not commit it is repeated", trace)
	}
	require.Len(t, b.sandbox.ran, len(plain.sandbox.ran))
	adopted := 0
	for _, x := range got.Timings {
		if x.Adopted {
			adopted++
		}
	}
	require.Equal(t, 8, adopted, "everything but the reward")
}

// A shard of a large step records its own times, and the step gets only when its stages ran.
func TestEpisodesRecordTheirTimes(t *testing.T) {
	b := episodesOf(t, 2)
	in := b.input()
	in.Record = true
	out, err := do(b.stepBench, episodes.RunEpisodes{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Empty(t, out.Timings)
	require.Equal(t, []string{schema.StageRollout, schema.StageSandbox, schema.StageAssemble, schema.StageReward},
		[]string{out.Busy[0].Stage, out.Busy[1].Stage, out.Busy[2].Stage, out.Busy[3].Stage})
	require.Len(t, out.Busy[0].Times, 3)
	place := schema.At(b.scope.Run, 1, stage.TimingsStep).WithShard(0)
	m, _, ok, err := b.deps.Record.Lookup(t.Context(), place)
	require.NoError(t, err)
	require.True(t, ok)
	rows, err := commit.Rows[schema.TimingRow](t.Context(), b.deps.Record, m)
	require.NoError(t, err)
	require.Len(t, rows, 3+2+1+1)
}

// An error names the stage within the activity.
func TestEpisodesNameThePartThatFails(t *testing.T) {
	b := episodesOf(t, 3)
	b.on(faults.New(b.deps.Store, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/sandbox/turn=1"}))
	_, err := b.run()
	require.Equal(t, api.FailedPart{Stage: schema.StageSandbox, Turn: 1, Activity: api.ExecuteToolCalls}, partOf(t,
		err))

	b = episodesOf(t, 3)
	b.scope.Config = schema.Ref{Key: b.scope.Config.Key, Digest: strings.Repeat("0", 64)}
	_, err = b.run()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, api.FailCorrupt, app.Type())
	require.True(t, app.NonRetryable())
}

func partOf(t *testing.T, err error) (part api.FailedPart) {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.NoError(t, app.Details(&part))
	return part
}

// stuck is an engine that never returns.
type stuck struct {
	fakeEngine
	entered chan struct{}
}

func (s stuck) Generate(context.Context, policy.GenerateRequest) (policy.Generated, error) {
	close(s.entered)
	select {}
}

// A stage that does not return ends with its time limit, although the activity itself may take much longer.
func TestAStageWithinEpisodesHasALimit(t *testing.T) {
	engine := stuck{entered: make(chan struct{})}
	b := stepOf(t, engine, &printer{nth: -1})
	in := api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 3,
		Sent: api.Sent{Timeouts: map[string]float64{api.GenerateRollouts: 0.2}}}
	_, err := do(b, episodes.RunEpisodes{Worker: b.deps}.Execute, in)
	<-engine.entered
	require.ErrorContains(t, err, "no result in 200ms")
	require.Equal(t, api.FailedPart{Stage: schema.StageRollout, Turn: 0, Activity: api.GenerateRollouts}, partOf(t,
		err))
	var app *temporal.ApplicationError
	require.True(t, errors.As(err, &app) && app.Type() == api.FailTimeout && !app.NonRetryable())
}

// A worker without a sandbox says which setting helps.
func TestEpisodesNeedASandbox(t *testing.T) {
	b := episodesOf(t, 1)
	b.deps.Execution.Sandbox = nil
	_, err := b.run()
	require.ErrorContains(t, err, "rollout.mode: interleaved runs tool calls on the workers of queue rollout")
}
