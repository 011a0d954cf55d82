package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
)

// early are answers that a few trajectories give at once; late is what the others answer after two turns of calls.
var early, late = []string{"x+1", "x+2"}, []string{"x+3", "x+4"}

// unequal is a policy whose trajectories end at different turns, each with an answer that needs sympy.
type unequal struct {
	fakeEngine
	tok       *tokenizer.Tokenizer
	invariant bool
	// last is called before a trajectory's last turn, if that is not its first. It may wait for what follows from the
	// early answers: a trajectory whose last turn comes before these goes on without it.
	last  func(ctx context.Context) error
	mu    sync.Mutex
	given map[string]bool // early answers of earlier batches
}

func (e *unequal) Capabilities() policy.Capabilities {
	can := e.fakeEngine.Capabilities()
	can.BatchInvariant = e.invariant
	return can
}

func (e *unequal) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	e.mu.Lock()
	defer e.mu.Unlock()
	waits := e.last != nil && len(e.given) == len(early)
	for i, prefix := range req.Prefixes {
		text := e.tok.Decode(prefix)
		turn := strings.Count(text, protocol.EndOfTurn+"\n<|im_start|>assistant\n") - 1
		response := "</reason>" + protocol.Call("print(1)", "") + protocol.EndOfTurn
		switch chosen := req.Streams[i] >> 9 % 4; {
		case turn == 0 && chosen < 2:
			response = protocol.AnswerResponse(early[chosen])
			if e.given == nil {
				e.given = map[string]bool{}
			}
			e.given[early[chosen]] = true
		case turn == 2:
			if waits {
				if err := e.last(ctx); err != nil {
					return g, err
				}
			}
			response = protocol.AnswerResponse(late[chosen%2])
		}
		ids := e.tok.Encode(response)
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// comparing is a sandbox that also compares answers. x+1 equals every gold.
type comparing struct {
	printer
	mu       sync.Mutex
	compared map[string]int // calls by answer
	broken   map[string]int // by answer: how many calls break; −1: all
	fails    int            // how many calls fail their whole batch; −1: all
}

func (c *comparing) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	results, broken := make([]sandbox.Result, len(calls)), make(sandbox.CallErrors, len(calls))
	for i, call := range calls {
		if call.Packages != sandbox.PackagesSympy {
			one, err := c.printer.Run(ctx, calls[i:i+1])
			if err != nil {
				return nil, err
			}
			results[i] = one[0]
			continue
		}
		var err error
		if results[i], broken[i], err = c.compare(call); err != nil {
			return nil, err
		}
	}
	if len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, nil
}

func (c *comparing) compare(call sandbox.Call) (r sandbox.Result, broken, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p symbolic.Pair
	if err := json.Unmarshal([]byte(call.Stdin), &p); err != nil {
		return r, nil, err
	}
	c.compared[p.Answer]++
	if c.fails != 0 {
		c.fails--
		return r, nil, errors.New("the sandbox is gone")
	}
	if c.broken[p.Answer] != 0 {
		c.broken[p.Answer]--
		return r, errors.New("the interpreter is gone"), nil
	}
	verdict := symbolic.Different
	if p.Answer == "x+1" {
		verdict = symbolic.Equal
	}
	return sandbox.Result{Status: sandbox.StatusOK, Stdout: fmt.Sprintf(`{"verdict":%q,"grader":"sympy 0"}`, verdict)},
		nil, nil
}

// asked returns how often each answer was compared.
func (c *comparing) asked() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.compared)
}

// verifierBench is a step of unequal trajectories.
type verifierBench struct {
	*stepBench
	engine  *unequal
	sandbox *comparing
}

// sums writes a file of questions. A recipe names it, so that benches with the same one commit the same.
func sums(t testing.TB) string {
	t.Helper()
	questions := filepath.Join(t.TempDir(), "questions.jsonl")
	var lines strings.Builder
	for i := range 20 {
		fmt.Fprintf(&lines, `{"question": "What is the %dth sum of one and x?", "answer": "1+x"}`+"\n", i)
	}
	require.NoError(t, os.WriteFile(questions, []byte(lines.String()), 0o600))
	return questions
}

// verifiers makes a bench over questions; flow says that the trajectories of a shard do not wait for one another.
func verifiers(t *testing.T, questions string, flow bool) *verifierBench {
	t.Helper()
	b := &verifierBench{engine: &unequal{tok: mathTokens(t), invariant: flow}}
	b.sandbox = &comparing{printer: printer{nth: -1}, compared: map[string]int{}, broken: map[string]int{}}
	b.stepBench = mathStep(t, b.engine, b.sandbox, questions)
	clear(b.sandbox.compared) // the run has looked whether there is sympy
	return b
}

func mathTokens(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := rollout.TokenizerOf(protocol.RStar2{}, math.RStar2)
	require.NoError(t, err)
	return tok
}

// mathStep is stepWith for questions whose gold is 1+x, with room for many turns.
func mathStep(t testing.TB, engine policy.Engine, executor sandbox.Executor, questions string, set ...string,
) *stepBench {
	t.Helper()
	b := stepWith(t, engine, executor, slices.Concat(manyTurns, []string{
		"environment={name: rstar2_math, settings: {train: " + questions + ", held_out_share: 0.3}}",
		"reward={name: rstar2_outcome, symbolic: true}",
		"rollout.max_turn_tokens=200", "warm_start={steps: 1, batch: 2, optimizer: {lr: 0.001}}"}, set)...)
	prompts := rowsAt[schema.PromptRow](b, b.prompts)
	for i := range prompts {
		prompts[i].Answer = "1+x"
	}
	b.prompts = commitRows(b, schema.At("r", 1, schema.StagePrompts).WithShard(0), prompts)
	b.policy.Manifest = b.prompts
	return b
}

// on switches to another worker on a store.
func (b *verifierBench) on(objects store.Store) {
	b.t.Helper()
	deps, err := New(stage.Options{Store: objects, Trainer: b.engine, Rollout: b.engine, Sandbox: b.sandbox,
		Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	published(deps, b.policy.Digest)
	b.deps = deps
}

func (b *verifierBench) run() (api.Episodes, error) {
	return do(b.stepBench, episodes.RunEpisodes{Worker: b.deps}.Execute,
		api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 20,
			Needs: stages.Needs{Grade: true}})
}

// staged takes the shard to its rewards by the activities of mode staged.
func (b *verifierBench) staged() (assembled, graded, scored schema.Ref, err error) {
	b.t.Helper()
	turns := &turnsBench{stepBench: b.stepBench}
	assembled = turns.shard(0, func() {})
	g, err := do(b.stepBench, verdict.GradeAnswers{Worker: b.deps}.Execute, api.VerdictInput{Scope: b.scope,
		Trajectories: assembled})
	if err != nil {
		return assembled, graded, scored, err
	}
	s, err := do(b.stepBench, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope,
		Trajectories: assembled, Verdicts: []schema.Ref{g.Manifest}})
	return assembled, g.Manifest, s.Manifest, err
}

// same requires that a shard has committed what the activities of mode staged have.
func (b *verifierBench) same(out api.Episodes, assembled, graded, scored schema.Ref) {
	b.t.Helper()
	require.Equal(b.t, assembled, out.Assembled)
	require.Equal(b.t, scored, out.Scored.Manifest) // it names the gradings by their digest
	rows := rowsAt[schema.GradingRow](b.stepBench, graded)
	m, err := b.deps.Record.Read(b.t.Context(), out.Scored.Manifest)
	require.NoError(b.t, err)
	require.Contains(b.t, m.Inputs, graded)
	require.NotEmpty(b.t, rows)
}

var eachOnce = map[string]int{"x+1": 1, "x+2": 1, "x+3": 1, "x+4": 1}

// The answers of episodes that end early are graded before the others have their last turn, which waits here for that.
// The stages commit what they commit in mode staged, and no pair is graded twice.
func TestAnswersAreGradedWhileOthersGenerate(t *testing.T) {
	questions := sums(t)
	plain := verifiers(t, questions, true)
	assembled, graded, scored, err := plain.staged()
	require.NoError(t, err)
	require.Equal(t, eachOnce, plain.sandbox.asked())
	for name, flow := range map[string]bool{"by a flow": true, "turn by turn": false} {
		t.Run(name, func(t *testing.T) {
			b := verifiers(t, questions, flow)
			b.engine.last = func(ctx context.Context) error {
				return patient(ctx, func() bool {
					asked := b.sandbox.asked()
					return asked[early[0]]*asked[early[1]] > 0
				})
			}
			out, err := b.run()
			require.NoError(t, err)
			b.same(out, assembled, graded, scored)
			require.Equal(t, eachOnce, b.sandbox.asked())
			var began, ended int64
			for _, x := range out.Timings {
				switch {
				case x.Stage == schema.StageGrade:
					began = x.Start
				case x.Stage == schema.StageRollout:
					ended = max(ended, x.End)
				}
			}
			require.Less(t, began, ended, "the stage's time is that of its work")
		})
	}
}

// A comparison that breaks while others generate is tried again by the stage, which decides as in mode staged.
func TestAStageDecidesAboutAnswersThatBreak(t *testing.T) {
	questions := sums(t)
	for name, breaks := range map[string]func(c *comparing){
		"once":             func(c *comparing) { c.broken["x+1"] = 3 },
		"one for good":     func(c *comparing) { c.broken["x+1"] = -1 },
		"several for good": func(c *comparing) { c.broken["x+1"], c.broken["x+4"] = -1, -1 },
	} {
		t.Run(name, func(t *testing.T) {
			plain := verifiers(t, questions, true)
			if name != "once" {
				breaks(plain.sandbox)
			}
			assembled, graded, scored, err := plain.staged()
			require.NoError(t, err)
			b := verifiers(t, questions, true)
			breaks(b.sandbox)
			out, err := b.run()
			require.NoError(t, err)
			b.same(out, assembled, graded, scored)
		})
	}
}

// A sandbox that breaks fails the stage grade with its error, after all turns are committed, and the next attempt goes
// on there.
func TestABrokenSandboxFailsTheStageThatGrades(t *testing.T) {
	questions := sums(t)
	plain := verifiers(t, questions, true)
	plain.sandbox.fails = -1
	_, _, _, want := plain.staged()
	require.ErrorContains(t, want, "the sandbox is gone")
	b := verifiers(t, questions, true)
	b.sandbox.fails = -1
	_, err := b.run()
	var staged, app *temporal.ApplicationError
	require.True(t, errors.As(want, &staged) && errors.As(err, &app))
	require.Equal(t, []any{staged.Message(), staged.NonRetryable()}, []any{app.Message(), app.NonRetryable()})
	require.Equal(t, api.FailedPart{Stage: schema.StageGrade, Turn: -1, Activity: api.GradeAnswers}, partOf(t, err))

	b.sandbox.fails, plain.sandbox.fails = 0, 0
	assembled, graded, scored, err := plain.staged()
	require.NoError(t, err)
	out, err := b.run()
	require.NoError(t, err)
	b.same(out, assembled, graded, scored)
	for _, x := range out.Timings {
		require.Equal(t, x.Stage != schema.StageGrade && x.Stage != schema.StageReward, x.Adopted, x.Stage)
	}
}

// A worker dies before each of the shard's commits in turn. The last attempt ends with the rows of an undisturbed one,
// and no answer is graded any more once the gradings are committed.
func TestAnswersAreGradedAfterKills(t *testing.T) {
	questions := sums(t)
	plain := verifiers(t, questions, true)
	assembled, graded, scored, err := plain.staged()
	require.NoError(t, err)
	b := verifiers(t, questions, true)
	objects := b.deps.Store
	for _, place := range []string{"rollout/turn=0", "sandbox/turn=0", "rollout/turn=2", "assemble", "grade",
		"reward"} {
		b.on(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place}))
		_, err := b.run()
		require.ErrorContains(t, err, faults.ErrInjected.Error(), place)
	}
	before := b.sandbox.asked()
	b.on(objects)
	out, err := b.run()
	require.NoError(t, err)
	b.same(out, assembled, graded, scored)
	require.Equal(t, before, b.sandbox.asked())
}

// No answer gets to a sandbox that is too weak for the recipe.
func TestNoAnswerIsGradedInAWeakSandbox(t *testing.T) {
	b := verifiers(t, sums(t), true)
	b.deps.Execution.Tier = sandbox.TierRlimits
	_, err := b.run()
	require.ErrorContains(t, err, "sandbox.min_tier: the recipe wants tier landlock")
	require.Empty(t, b.sandbox.asked())
}
