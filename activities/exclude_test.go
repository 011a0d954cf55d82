package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/replay"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// frail is an engine that panics on the row with index bad in the whole batch, the given number of times.
type frail struct {
	policy.Engine
	bad, times int
	stream     uint64 // the bad row's stream, known after the request for the whole batch
}

func (f *frail) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	if f.stream == 0 && f.bad >= 0 {
		f.stream = req.Streams[f.bad]
	}
	for _, s := range req.Streams {
		if s == f.stream && f.times > 0 {
			f.times--
			panic("index out of range [3] with length 3")
		}
	}
	return f.Engine.Generate(ctx, req)
}

// cpuEngine is a real engine with a tiny policy resident.
func cpuEngine(t *testing.T, vocabulary int) policy.Engine {
	t.Helper()
	e, err := cpu.Open(cpu.Options{Threads: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	dir := t.TempDir()
	shape := checkpoint.Shape{
		Vocab: vocabulary, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 32, Positions: 1024,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
	}
	require.NoError(t, checkpoint.Init(dir, shape, 5, map[string][]byte{"tokenizer.json": []byte("{}")}))
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
	return e
}

func TestAnEngineThatPanicsOnOneRowOfTheCPU(t *testing.T) {
	tok, err := rollout.NewTokenizer()
	require.NoError(t, err)
	const bad = 5
	for _, c := range []struct {
		name     string
		times    int
		excluded int
	}{{"once", 1, 0}, {"always", 1 << 30, 1}} {
		t.Run(c.name, func(t *testing.T) {
			generate := func(engine policy.Engine) (api.Generated, []schema.TurnRow) {
				b := stepOf(t, engine, nil)
				out, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute,
					api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy})
				require.NoError(t, err)
				return out, rowsAt[schema.TurnRow](b, out.Manifest)
			}
			_, want := generate(cpuEngine(t, tok.VocabSize()))
			out, got := generate(&frail{Engine: cpuEngine(t, tok.VocabSize()), bad: bad, times: c.times})
			require.Equal(t, c.excluded, out.Excluded)
			require.Len(t, got, 2*benchSamples)
			for i := range got {
				if i == bad && c.excluded > 0 {
					require.Equal(t, "engine: panicked: index out of range [3] with length 3", *got[i].Excluded)
					require.Equal(t, want[i].TokenIDs[:want[i].ContextTokens], got[i].TokenIDs)
					continue
				}
				require.Equal(t, want[i].TokenIDs, got[i].TokenIDs, "row %d", i)
				require.InDeltaSlice(t, want[i].LogProbs, got[i].LogProbs, 1e-5)
				require.Nil(t, got[i].Excluded)
			}
		})
	}
}

// caller is an engine whose policy calls the tool with its row's own program, reads the output and answers with it.
type caller struct {
	fakeEngine
	deps *stage.Worker
	fail error
}

func (c *caller) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	if c.fail != nil {
		return policy.Generated{}, c.fail
	}
	var g policy.Generated
	for i, prefix := range req.Prefixes {
		text := protocol.CallResponse(fmt.Sprintf("print(%d)", req.Streams[i]%1000))
		if strings.Contains(c.deps.Recipes.Tokens.Decode(prefix), "<tool_response>") {
			text = protocol.AnswerResponse("7")
		}
		ids := c.deps.Recipes.Tokens.Encode(text)
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, policy.FinishStop)
	}
	return g, nil
}

var errSandbox = errors.New("zygote is gone")

// printer is a sandbox that has no verdict on the n-th call of each batch of several calls, nor on the same program
// when it runs again.
type printer struct {
	nth  int // −1: on none
	all  bool
	code string
}

func (p *printer) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if p.nth >= 0 && p.code == "" {
		p.code = calls[p.nth].Code
	}
	results, broken := make([]sandbox.Result, len(calls)), make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		if p.all || c.Code == p.code {
			broken[i] = errSandbox
			continue
		}
		results[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: "7\n"}
	}
	if len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, nil
}

func (p *printer) Close() error { return nil }

// callingBench is a step whose policy calls the tool in turn 0.
func callingBench(t *testing.T, executor sandbox.Executor) (*stepBench, *caller) {
	engine := &caller{}
	b := stepOf(t, engine, executor)
	engine.deps = b.deps
	return b, engine
}

// shard takes shard 0 through turn 0, its tools, turn 1 and assembly.
func (b *stepBench) shard() (api.ToolsDone, schema.Ref) {
	b.t.Helper()
	in := api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy}
	first, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
	require.NoError(b.t, err)
	require.Equal(b.t, 2*benchSamples, first.Calls)
	tools, err := do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute,
		api.ToolsInput{Scope: b.scope, Past: api.Past{Last: first.Manifest}, Prompts: b.prompts})
	require.NoError(b.t, err)
	in.Turn, in.Last = 1, tools.Manifest
	second, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
	require.NoError(b.t, err)
	require.Zero(b.t, second.Calls)
	assembled, err := do(b, episodes.AssembleTrajectories{Worker: b.deps}.Execute, api.AssembleInput{
		Scope: b.scope, Past: api.Past{Last: second.Manifest}, Prompts: b.prompts,
	})
	require.NoError(b.t, err)
	return tools, assembled.Manifest
}

func TestACallThatBreaksExcludesItsTrajectory(t *testing.T) {
	b, _ := callingBench(t, &printer{nth: 3})
	tools, assembled := b.shard()
	require.Equal(t, 1, tools.Excluded)
	require.Equal(t, 2*benchSamples, tools.Calls)
	require.Zero(t, tools.Failed, "breakage is no failure of the policy's")
	id := schema.TrajectoryID(1, 0, 3)
	calls := rowsAt[schema.ToolCallRow](b, tools.Manifest)
	require.Equal(t, "sandbox: zygote is gone", *calls[3].Excluded)
	require.Empty(t, calls[3].Status)
	for _, r := range rowsAt[schema.TrajectoryRow](b, assembled) {
		if r.TrajectoryID == id {
			require.Equal(t, "sandbox: zygote is gone", *r.Excluded)
			require.Equal(t, "excluded", r.Finish)
			require.EqualValues(t, 1, r.Turns, "it goes no further")
			continue
		}
		require.Nil(t, r.Excluded)
		require.EqualValues(t, 2, r.Turns)
	}

	scored, err := do(b, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope,
		Trajectories: assembled})
	require.NoError(t, err)
	require.Equal(t, 1, scored.Excluded)
	require.Equal(t, 2*benchSamples-1, scored.Trajectories)
	for _, r := range rowsAt[schema.RewardRow](b, scored.Manifest) {
		require.NotEqual(t, id, r.TrajectoryID, "it is worth nothing, not 0")
	}
	selection, err := do(b, learn.Resample{Worker: b.deps}.Execute,
		b.rewarded(b.stage(schema.StageReward, -1, scored.Manifest)))
	require.NoError(t, err)
	require.Equal(t, 1, selection.Reasons[schema.ReasonExcluded])
	require.Equal(t, "sandbox: zygote is gone", *rowsAt[schema.SelectionRow](b, selection.Manifest)[3].Excluded)

	again, err := do(b, replay.CheckReplay{Worker: b.deps}.Execute, api.CheckInput{Run: "r", Step: 1})
	require.NoError(t, err)
	require.Equal(t, 3, again.Shards, "rewards, what has none, and the selection")
	require.Empty(t, again.Differs)
}

func TestWithoutBreakageNothingIsSaidOfIt(t *testing.T) {
	b, _ := callingBench(t, &printer{nth: -1})
	tools, assembled := b.shard()
	scored, err := do(b, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope,
		Trajectories: assembled})
	require.NoError(t, err)
	require.Zero(t, tools.Excluded+scored.Excluded)
	m, err := b.deps.Record.Read(t.Context(), scored.Manifest)
	require.NoError(t, err)
	require.Len(t, m.Shards, 1)
	require.NotContains(t, m.Note[schema.NoteResult], "excluded")
}

func TestABrokenEngineOrSandboxFailsTheStage(t *testing.T) {
	b, engine := callingBench(t, &printer{nth: -1, all: true})
	in := api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy}
	for _, fail := range []error{errors.New("no token for anyone"), policy.ErrLost, policy.ErrOutOfMemory} {
		engine.fail = fail
		_, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
		require.ErrorContains(t, err, fail.Error())
		_, sampler := b.deps.Engines.Pool.CPU()
		require.Equal(t, errors.Is(fail, policy.ErrLost), !sampler.Holds(policy.RolePolicy, b.policy.Digest),
			"a lost engine holds nothing")
		published(b.deps, b.policy.Digest)
		_, _, found, err := b.deps.Record.Lookup(t.Context(),
			schema.At("r", 1, schema.StageRollout).WithTurn(0).WithShard(0))
		require.NoError(t, err)
		require.False(t, found)
	}
	engine.fail = nil
	first, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
	require.NoError(t, err, "and a retry goes on")
	_, err = do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute,
		api.ToolsInput{Scope: b.scope, Past: api.Past{Last: first.Manifest}, Prompts: b.prompts})
	require.ErrorContains(t, err, "none of 12 calls got a verdict: zygote is gone")
}

// An imported trajectory counts its calls that failed where it was made.
func TestImportedTrajectoriesCountFailedCalls(t *testing.T) {
	b := stepOf(t, nil, nil)
	var trajectories []schema.ImportedRow
	var calls []schema.ToolCallRow
	for sample, status := range []string{"ok", "tool_error"} {
		group, id := schema.GroupID(1, 0), schema.TrajectoryID(1, 0, sample)
		trajectories = append(trajectories, schema.ImportedRow{GroupID: group, TrajectoryID: id, ProblemID: "p",
			Source: "s", ToolCalls: 1, Finish: "answered"})
		calls = append(calls, schema.ToolCallRow{GroupID: group, TrajectoryID: id, Status: status})
	}
	turns := commitRows(b, schema.At("r", 1, schema.StageRollout).WithTurn(0).WithShard(0), trajectories)
	tools := commitRows(b, schema.At("r", 1, schema.StageSandbox).WithTurn(0).WithShard(0), calls, turns)
	rows, err := episodes.AssembleTrajectories{Worker: b.deps}.Imported(t.Context(),
		api.AssembleInput{Past: api.Past{Last: tools}}, nil)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1}, []int32{rows[0].ToolErrors, rows[1].ToolErrors})
	require.NoError(t, schema.Audit(rows))
}
