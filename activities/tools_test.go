package activities

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/evaluate"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// elsewhere is a tool whose calls must not run twice. It counts the executions of each call.
type elsewhere struct {
	mu    sync.Mutex
	lines map[string]int
}

type line struct {
	Text string `json:"text" doc:"the line to add"`
}

func (*elsewhere) Spec() tool.Spec {
	return tool.Spec{Name: "ledger", Doc: "adds a line to a ledger", Schema: tool.SchemaOf[line](),
		Repeat: tool.AtMostOnce}
}

func (l *elsewhere) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.Each(ctx, calls, func(_ context.Context, c tool.Call, given line) (tool.Result, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines[c.Key.String()]++
		return tool.Result{Status: tool.OK, Stdout: "added " + given.Text}, nil
	})
}

// clerk is an engine whose policy adds a line of its row and runs a program in turn 0, and then answers.
type clerk struct {
	fakeEngine
	deps *stage.Worker
}

func (c *clerk) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for i, prefix := range req.Prefixes {
		text := fmt.Sprintf(`</reason><tool_call>{"name": "ledger", "arguments": {"text": "%d"}}</tool_call>`,
			req.Streams[i]%1000) + protocol.Call("print(7)", "") + protocol.EndOfTurn
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

// ledgerBench is a step whose policy calls python and a ledger.
type ledgerBench struct {
	*stepBench
	engine *clerk
	ledger *elsewhere
	input  api.ToolsInput
}

func ledgerOf(t *testing.T) *ledgerBench {
	engine := &clerk{}
	b := &ledgerBench{engine: engine, ledger: &elsewhere{lines: map[string]int{}},
		stepBench: stepWith(t, engine, nil, "rollout.max_tokens=2000", "rollout.max_turn_tokens=400",
			"policy.max_positions=2048", "rollout.max_tool_text_bytes=200")}
	b.on(b.deps.Store)
	turn, err := do(b.stepBench, episodes.GenerateRollouts{Worker: b.deps}.Execute,
		api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy})
	require.NoError(t, err)
	b.input = api.ToolsInput{Scope: b.scope, Past: api.Past{Last: turn.Manifest}, Prompts: b.prompts}
	return b
}

// on switches to another worker on a store.
func (b *ledgerBench) on(objects store.Store) {
	b.t.Helper()
	deps, err := New(stage.Options{Store: objects, Trainer: b.engine, Rollout: b.engine, Sandbox: &printer{nth: -1},
		Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, deps.Close()) })
	deps.Recipes.Declared = func(*recipes.Recipe) ([]tools.Declaration, error) {
		return []tools.Declaration{tools.Python, {Spec: b.ledger.Spec(),
			Open: func(tools.Host) (tool.Tool, error) { return b.ledger, nil }}}, nil
	}
	published(deps, b.policy.Digest)
	b.deps, b.engine.deps = deps, deps
}

// execute runs the turn's tool calls on a worker of its own, whose store has faults.
func (b *ledgerBench) execute(rules ...faults.Rule) (api.ToolsDone, error) {
	b.t.Helper()
	objects := b.deps.Store
	b.on(faults.New(objects, rules...))
	defer b.on(objects)
	return do(b.stepBench, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, b.input)
}

// once requires that every line was added exactly once.
func (b *ledgerBench) once(n int) {
	b.t.Helper()
	require.Len(b.t, b.ledger.lines, n)
	for key, times := range maps.All(b.ledger.lines) {
		require.Equal(b.t, 1, times, "call %s ran %d times", key, times)
	}
}

// A worker dies after the calls of a turn have run and before their rows are committed. The next attempt, on another
// worker, commits the same bytes as an undisturbed one and runs no call again.
func TestCallsThatMustNotRunTwiceAreReadAfterAKill(t *testing.T) {
	plain := ledgerOf(t)
	want, err := plain.execute()
	require.NoError(t, err)
	require.Equal(t, 2*2*benchSamples, want.Calls)
	require.Zero(t, want.Failed+want.Excluded)
	for i, r := range rowsAt[schema.ToolCallRow](plain.stepBench, want.Manifest) {
		require.EqualValues(t, i%2, r.Call)
		require.Equal(t, []string{"ledger", protocol.ToolName}[i%2], r.Name)
		require.Equal(t, i%2 == 0, strings.HasPrefix(r.Stdout, "added "), r.Stdout)
	}

	b := ledgerOf(t)
	for range 2 {
		_, err = b.execute(faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/sandbox/"})
		require.ErrorContains(t, err, faults.ErrInjected.Error())
		b.once(2 * benchSamples)
	}
	got, err := b.execute()
	require.NoError(t, err)
	require.Equal(t, want.Manifest, got.Manifest, "the bytes of an undisturbed attempt")
	b.once(2 * benchSamples)
}

// A worker dies when a call has run and its result is not noted yet. No one knows whether it ran, so its trajectory is
// excluded, and the call is not run again.
func TestACallWithAnUnknownOutcomeExcludesItsTrajectory(t *testing.T) {
	b := ledgerOf(t)
	_, err := b.execute(faults.Rule{Op: faults.PutIfAbsent, Key: "/ended-0", Nth: 3})
	require.ErrorContains(t, err, faults.ErrInjected.Error())
	b.once(2 * benchSamples)
	out, err := b.execute()
	require.NoError(t, err)
	require.Equal(t, 1, out.Excluded)
	b.once(2 * benchSamples)
	excluded := 0
	for _, r := range rowsAt[schema.ToolCallRow](b.stepBench, out.Manifest) {
		if r.Excluded != nil {
			excluded++
			require.Equal(t, "ledger", r.Name)
			require.Equal(t, "tool ledger: the outcome of the call is unknown: it was begun and has no result",
				*r.Excluded)
			require.Empty(t, r.Stdout)
		}
	}
	require.Equal(t, 1, excluded)
}

// A worker freezes before its calls run, and others believe it dead. When it wakes up, it runs no call that the other
// attempt has run, and commits the same rows.
func TestAnAttemptThatWakesUpLate(t *testing.T) {
	b := ledgerOf(t)
	objects := b.deps.Store
	var first api.ToolsDone
	var other error
	var once sync.Once
	b.on(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "/begun-0", Effect: faults.Delay, Before: func() {
		once.Do(func() {
			frozen := b.deps
			b.on(objects)
			first, other = do(b.stepBench, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, b.input)
			b.deps, b.engine.deps = frozen, frozen
		})
	}}))
	late, err := do(b.stepBench, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, b.input)
	require.NoError(t, err)
	require.NoError(t, other)
	require.Zero(t, first.Excluded)
	require.Equal(t, first.Manifest, late.Manifest)
	b.once(2 * benchSamples)
}

// An evaluation that is run again reads the results of its calls too, and another pass makes calls of its own.
func TestAnEvaluationThatIsRunAgainRepeatsNoCall(t *testing.T) {
	b := ledgerOf(t)
	objects := b.deps.Store
	in := api.EvaluateInput{Scope: b.scope, Tag: "step", Policy: b.policy}
	b.on(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/evaluate/"}))
	_, err := do(b.stepBench, evaluate.Evaluate{Worker: b.deps}.Execute, in)
	require.ErrorContains(t, err, faults.ErrInjected.Error())
	ran := len(b.ledger.lines)
	require.Positive(t, ran)
	b.once(ran)
	b.on(objects)
	out, err := do(b.stepBench, evaluate.Evaluate{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	b.once(ran)
	require.EqualValues(t, ran, len(rowsAt[schema.EvaluationRow](b.stepBench, out.Manifest)))
}

func TestNotesOfCallsAreNoRecordsOfOthers(t *testing.T) {
	b := ledgerOf(t)
	_, err := b.execute()
	require.NoError(t, err)
	listed, err := b.deps.Store.List(t.Context(), schema.RunPrefix("r")+"calls/")
	require.NoError(t, err)
	require.Len(t, listed, 2*2*benchSamples, "two notes for each call of the ledger, none for those of python")
	require.Equal(t, "runs/run=r/calls/sample/step=1/gen=0/group=0/sample=0/turn=0/call=0/begun-0.json", listed[0].Key)
	for _, o := range listed {
		require.True(t, schema.IsNote(o.Key), o.Key)
	}
	require.False(t, schema.IsNote(schema.RunPrefix("calls")+"heads/step=1.json"))
}
