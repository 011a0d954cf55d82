package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/tracetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// invariant is a scripted engine whose rows may generate together in any way.
type invariant struct {
	*scripted
	rows atomic.Int64 // asked for
}

func (e *invariant) Capabilities() policy.Capabilities {
	can := e.scripted.Capabilities()
	can.BatchInvariant = true
	return can
}

func (e *invariant) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	e.rows.Add(int64(len(req.Prefixes)))
	return e.scripted.Generate(ctx, req)
}

// flowBench is a step whose policy follows a script, for RunEpisodes with a flow.
type flowBench struct {
	*episodesBench
	invariant *invariant
}

func flowsOf(t *testing.T, turns int, settings ...string) *flowBench {
	b := &flowBench{episodesBench: episodesOf(t, turns, settings...)}
	b.at(b.deps.Store, b.sandbox)
	return b
}

// at switches to another worker.
func (b *flowBench) at(objects store.Store, box sandbox.Executor) {
	b.t.Helper()
	b.invariant = &invariant{scripted: &scripted{script: b.engine.script}}
	deps, err := New(stage.Options{Store: objects, Trainer: b.invariant, Rollout: b.invariant, Sandbox: box,
		Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	published(deps, b.policy.Digest)
	b.deps, b.invariant.deps = deps, deps
	deps.SegmentEvery = time.Millisecond
}

func (b *flowBench) segments() (keys []string) {
	b.t.Helper()
	listed, err := b.deps.Store.List(b.t.Context(), schema.SegmentsPrefix(b.scope.Run, 1, 0, 0))
	require.NoError(b.t, err)
	for _, o := range listed {
		keys = append(keys, o.Key)
	}
	return keys
}

// A flow commits the manifests of mode staged, and nothing else is left of it. Equal calls run once.
func TestFlowsCommitWhatStagedActivitiesCommit(t *testing.T) {
	staged := episodesOf(t, 4)
	want, err := staged.run()
	require.NoError(t, err)
	b := flowsOf(t, 4)
	out, err := b.run()
	require.NoError(t, err)
	require.Equal(t, want.Assembled, out.Assembled)
	require.Equal(t, want.Scored.Manifest, out.Scored.Manifest)
	require.Less(t, len(b.sandbox.ran), len(staged.sandbox.ran))
	require.Len(t, out.Timings, len(want.Timings))
	for _, x := range out.Timings {
		require.Positive(t, x.Start)
		require.LessOrEqual(t, x.Start, x.End)
	}
	require.Empty(t, b.segments())
}

// diesAtEachCommit has one worker after the other die before a commit of the shard, each before the next one. It
// returns how many rows they generated, and how many of them have left segments.
func (b *flowBench) diesAtEachCommit() (generated, kept int) {
	b.t.Helper()
	objects := b.deps.Store
	for _, place := range []string{"rollout/turn=0", "sandbox/turn=0", "rollout/turn=1", "sandbox/turn=1",
		"rollout/turn=2", "sandbox/turn=2", "rollout/turn=3", "assemble", "reward"} {
		b.at(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place}), b.sandbox)
		_, err := b.run()
		require.ErrorContains(b.t, err, faults.ErrInjected.Error(), place)
		generated += int(b.invariant.rows.Load())
		if len(b.segments()) > 0 {
			kept++
		}
	}
	return generated, kept
}

// A worker dies before each of the shard's commits in turn. Only what was in flight is generated again or runs again.
func TestFlowsGoOnAfterKills(t *testing.T) {
	plain := flowsOf(t, 3)
	want, err := plain.run()
	require.NoError(t, err)
	b := flowsOf(t, 3)
	objects := b.deps.Store
	generated, _ := b.diesAtEachCommit()
	b.at(objects, b.sandbox)
	got, err := b.run()
	require.NoError(t, err)
	require.Zero(t, b.invariant.rows.Load())
	require.LessOrEqual(t, generated, int(plain.invariant.rows.Load())+2*b.trajectories())
	require.Equal(t, want.Assembled, got.Assembled)
	require.Equal(t, want.Scored.Manifest, got.Scored.Manifest)
	for trace, times := range b.sandbox.ran {
		require.LessOrEqual(t, times, 3, trace)
	}
	require.Empty(t, b.segments())
}

// holding is a sandbox that does not return from the first program it sees until it is released.
type holding struct {
	*counting
	mu      sync.Mutex
	code    string
	release chan struct{}
}

func (h *holding) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	for _, c := range calls {
		h.mu.Lock()
		if h.code == "" {
			h.code = c.Code
		}
		held := h.code == c.Code
		h.mu.Unlock()
		if held {
			<-h.release
		}
	}
	return h.counting.Run(ctx, calls)
}

// While a worker is frozen in the first turn of some episodes, another one takes its shard over. Whatever the first
// has kept is not done again. When it wakes up, it adopts what is committed.
func TestAFrozenWorkersSegmentsServeTheNext(t *testing.T) {
	plain := flowsOf(t, 3)
	want, err := plain.run()
	require.NoError(t, err)
	made := plain.calls(3)
	b := flowsOf(t, 3)
	objects := b.deps.Store
	box := &holding{counting: &counting{printer: printer{nth: -1}, ran: map[string]int{}}, release: make(chan struct{})}
	b.at(objects, box)
	first := *b
	type ended struct {
		out api.Episodes
		err error
	}
	woken := make(chan ended, 1)
	go func() {
		out, err := do(first.stepBench, episodes.RunEpisodes{Worker: first.deps}.Execute, first.input())
		woken <- ended{out, err}
	}()
	kept := func() (finished int) {
		for _, key := range b.segments() {
			data, err := objects.Get(t.Context(), key)
			require.NoError(t, err)
			if _, _, _, table, _ := schema.ParseSegmentKey(key); table == schema.Turns {
				rows, err := schema.Decode[schema.TurnRow](data)
				require.NoError(t, err)
				for _, r := range rows {
					if r.Turn == 3 {
						finished++
					}
				}
			}
		}
		return finished
	}
	held := func() int { // episodes that make the call that does not return
		box.mu.Lock()
		defer box.mu.Unlock()
		makers := map[string]bool{}
		for _, c := range made {
			if c.Code == box.code {
				makers[c.TrajectoryID] = true
			}
		}
		return len(makers)
	}
	settled := 0
	require.Eventually(t, func() bool { // everything but the held episodes has ended and is kept
		settled = kept()
		return settled > 0 && settled == b.trajectories()-held()
	}, 5*time.Minute, 10*time.Millisecond)

	second := &counting{printer: printer{nth: -1}, ran: map[string]int{}}
	b.at(objects, second)
	got, err := b.run()
	require.NoError(t, err)
	require.Equal(t, want.Assembled, got.Assembled)
	require.NotEmpty(t, second.ran)
	box.counting.mu.Lock()
	for trace := range second.ran {
		require.Zero(t, box.counting.ran[trace], "%s ran on both workers", trace)
	}
	again := b.invariant.rows.Load()
	box.counting.mu.Unlock()
	require.Positive(t, again)
	require.LessOrEqual(t, int(again), 4*(b.trajectories()-settled), "rows of episodes that were held")

	close(box.release)
	late := <-woken
	require.NoError(t, late.err)
	require.Equal(t, want.Assembled, late.out.Assembled)
}

// calls are those that the shard made in its turns.
func (b *flowBench) calls(turns int) (rows []schema.ToolCallRow) {
	b.t.Helper()
	record := commit.New(b.deps.Store)
	for turn := range turns {
		m, _, found, err := record.Lookup(b.t.Context(),
			schema.At(b.scope.Run, 1, schema.StageSandbox).WithTurn(turn).WithShard(0))
		require.NoError(b.t, err)
		require.True(b.t, found)
		made, err := commit.Rows[schema.ToolCallRow](b.t.Context(), record, m)
		require.NoError(b.t, err)
		rows = append(rows, made...)
	}
	require.NotEmpty(b.t, rows)
	return rows
}

// trajectories counts the shard's trajectories.
func (b *flowBench) trajectories() int {
	b.t.Helper()
	recipe, err := b.deps.Recipes.Recipe(b.t.Context(), b.scope)
	require.NoError(b.t, err)
	return min(recipe.Rollout.ShardGroups, recipe.Rollout.Prompts) * recipe.Rollout.SamplesPerPrompt
}

// Segments that do not continue the committed turns, or cannot be read, are no obstacle.
func TestDamagedSegmentsAreLeft(t *testing.T) {
	want, err := flowsOf(t, 2).run()
	require.NoError(t, err)
	b := flowsOf(t, 2)
	prefix := schema.SegmentsPrefix(b.scope.Run, 1, 0, 0)
	require.NoError(t, b.deps.Store.Put(t.Context(), schema.SegmentKey(prefix, "1-a", 1, schema.Turns),
		[]byte(strings.Repeat("no rows", 9))))
	out, err := b.run()
	require.NoError(t, err)
	require.Equal(t, want.Assembled, out.Assembled)
	require.Empty(t, b.segments())
}

// While a flow works, heartbeats say how far its episodes are, and how much room the sampler has.
func TestHeartbeatsOfAFlow(t *testing.T) {
	b := flowsOf(t, 1)
	p := &stage.Progress{}
	e := &stage.Env{Progress: p}
	end := e.Use()
	require.NoError(t, episodes.Open(t.Context(), b.deps, b.input(), e))
	e.Flow.Wait()
	details := p.Details()
	require.Len(t, details, 4)
	require.Equal(t, []any{b.trajectories(), b.trajectories()}, details[:2])
	state := details[2].(api.ShardState)
	require.Equal(t, b.trajectories(), state.Finished)
	require.EqualValues(t, 2*b.trajectories(), state.Turns)
	require.Positive(t, state.TokensPerSec)
	require.Zero(t, state.Calls)
	require.Equal(t, api.Capacity{Engine: "a fake"}, details[3])
	end()
	require.Len(t, p.Details(), 2)
	require.NotEmpty(t, b.segments(), "an attempt that fails keeps what it has")
}

// telling is a sandbox that logs each call.
type telling struct{ sandbox.Executor }

func (s telling) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	slog.InfoContext(ctx, "told")
	return s.Executor.Run(ctx, calls)
}

// The responses and calls that a flow works ahead on are spans below the activity's, with the attributes of the stages
// that they will be committed by, and its lines in the log say what they are about.
func TestTheSpansAndLinesOfAFlow(t *testing.T) {
	b := flowsOf(t, 2)
	c := tracetest.New(t)
	tracer := c.Tracer(t)
	b.deps.Tracer = tracer
	b.deps.Execution.Sandbox = telling{b.sandbox}
	var lines bytes.Buffer
	h, err := logs.New(&lines, logs.Options{Format: "json", Level: slog.LevelInfo})
	require.NoError(t, err)
	before := slog.Default()
	slog.SetDefault(slog.New(h))
	_, err = b.run()
	slog.SetDefault(before)
	require.NoError(t, err)
	require.NoError(t, tracer.Close())

	paths, ids := map[string]int{}, map[string]tracetest.Span{}
	for _, s := range c.Spans(t) {
		paths[s.Path]++
		ids[s.SpanID] = s
		require.Equal(t, "", s.Failure, s.Path)
		var want map[string]string
		switch s.Path {
		case "episodes":
			want = map[string]string{"run": b.scope.Run, "step": "1", "shard": "0", "attempt": "1"}
		case "episodes > tool python":
			want = map[string]string{"stage": schema.StageSandbox, "turn": s.Attributes["turn"], "calls": "1",
				"trajectory": s.Attributes["trajectory"]}
			require.Contains(t, []string{"0", "1"}, s.Attributes["turn"])
		case "episodes > engine sample":
			require.Equal(t, schema.StageRollout, s.Attributes["stage"])
			require.Contains(t, []string{"0", "1", "2"}, s.Attributes["turn"])
			require.NotEmpty(t, s.Attributes["trajectory"])
			continue
		default:
			continue
		}
		require.Equal(t, want, s.Attributes, s.Path)
	}
	require.Equal(t, 1, paths["episodes"])
	require.Equal(t, int(b.invariant.rows.Load()), paths["episodes > engine sample"], "%v", paths)
	require.GreaterOrEqual(t, paths["episodes > tool python"], len(b.sandbox.ran), "%v", paths)
	require.Equal(t, 3, paths["episodes > rollout"], "%v", paths)
	require.Equal(t, 2, paths["episodes > sandbox"])
	require.Equal(t, 1, paths["episodes > reward"])

	told := 0
	for line := range strings.Lines(lines.String()) {
		var of map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &of))
		if of["msg"] != "told" {
			continue
		}
		told++
		require.Equal(t, b.scope.Run, of["run"], line)
		require.Equal(t, 1.0, of["step"], line)
		require.Equal(t, schema.StageSandbox, of["stage"], line)
		require.Equal(t, 0.0, of["shard"], line)
		require.Equal(t, 1.0, of["attempt"], line)
		require.Contains(t, []any{0.0, 1.0}, of["turn"], line)
		require.NotEmpty(t, of["trajectory"], line)
		require.Equal(t, "episodes", ids[of["span_id"].(string)].Name, line)
	}
	require.Positive(t, told)
}
