package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// algebra is a sandbox with a fake sympy: it answers calls of the set sympy by their answer, passes other calls on,
// and counts the calls about the training questions.
type algebra struct {
	sandbox.Executor
	verdicts map[string]symbolic.Verdict // by answer; different if there is none
	timeouts map[string]int              // by answer: how many runs time out
	calls    map[string]int
	absent   bool // the sandbox has no sympy
}

func (a *algebra) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if len(calls) == 0 || calls[0].Packages != sandbox.PackagesSympy {
		return a.Executor.Run(ctx, calls)
	}
	if a.absent {
		broken := make(sandbox.CallErrors, len(calls))
		for i := range broken {
			broken[i] = fmt.Errorf("%w: packages \"sympy\" need sympy", sandbox.ErrBadCall)
		}
		return make([]sandbox.Result, len(calls)), broken
	}
	out := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		var p symbolic.Pair
		if err := json.Unmarshal([]byte(c.Stdin), &p); err != nil {
			return nil, err
		}
		if p.Gold == trainedGold {
			a.calls[p.Answer]++
		}
		if p.Gold == trainedGold && a.timeouts[p.Answer] > 0 {
			a.timeouts[p.Answer]--
			out[i].Status = sandbox.StatusTimeoutCPU
			continue
		}
		verdict := symbolic.Different
		if v, ok := a.verdicts[p.Answer]; ok {
			verdict = v
		}
		out[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: fmt.Sprintf(`{"verdict":%q,"grader":"sympy 0"}`,
			verdict)}
	}
	return out, nil
}

// algebraic is a worker whose sandbox is a.
func algebraic(t *testing.T, a *algebra) *bench {
	t.Helper()
	a.calls = map[string]int{}
	if a.verdicts == nil {
		a.verdicts = map[string]symbolic.Verdict{"x+1": symbolic.Equal}
	}
	return boxes(t, func(e sandbox.Executor) sandbox.Executor { a.Executor = e; return a })
}

// boxes is a worker with a sandbox whose policy gives each question one of five answers.
func boxes(t *testing.T, sandboxed func(sandbox.Executor) sandbox.Executor) *bench {
	t.Helper()
	tok, err := rollout.TokenizerOf(protocol.Boxed{}, math.Plain)
	require.NoError(t, err)
	objects := mem.New()
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Sandbox: sandboxed,
		Rollout: func(e policy.Engine) policy.Engine {
			return boxer{e, tok, []string{"x+1", "x+2", "1+x", "north", "2"}}
		},
	})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

// trainedGold is the gold of the training questions. Evaluations ask others.
const trainedGold = "1+x"

// symbolically trains one step of one shard on questions of a file.
func symbolically(t *testing.T, b *bench, set ...string) error {
	t.Helper()
	folder := t.TempDir()
	file := func(name, gold string) string {
		var rows strings.Builder
		for i := range 6 {
			fmt.Fprintf(&rows, `{"question": "What is sum %d of %s?", "answer": "#### %s"}`+"\n", i, name, gold)
		}
		path := filepath.Join(folder, name+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(rows.String()), 0o600))
		return path
	}
	_, recipe, _ := strings.Cut(questionRecipe, "environment:")
	_, recipe, _ = strings.Cut(recipe, "\n")
	recipe = fmt.Sprintf("version: 1\nname: questions\nsteps: 1\nenvironment: {name: math, settings: {train: %s, "+
		"held_out: %s}}\n", file("train", trainedGold), file("test", "y+1")) + recipe
	_, err := b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: recipe,
		Set: append([]string{"rollout.shard_groups=2"}, set...)})
	return err
}

// stageRows reads a table of a stage that step 1's head names.
func stageRows[R schema.Row](t *testing.T, b *bench, stage string) []R {
	t.Helper()
	head, _, found, err := b.record.Head(t.Context(), "r", "1")
	require.NoError(t, err)
	require.True(t, found)
	require.NotEmpty(t, head.Stages[stage], stage)
	m, err := b.record.Read(t.Context(), head.Stages[stage][0])
	require.NoError(t, err)
	rows, err := commit.Rows[R](t.Context(), b.record, m)
	require.NoError(t, err)
	return rows
}

func noFaults(t *testing.T, b *bench) {
	t.Helper()
	found, err := verify.Run(t.Context(), b.store, "r")
	require.NoError(t, err)
	require.Empty(t, found.Faults)
}

func TestAnswersAreGradedInTheSandbox(t *testing.T) {
	e := zygotetest.WithSympy(t, sandbox.TierLandlock)
	b := boxes(t, func(sandbox.Executor) sandbox.Executor { return e })
	require.NoError(t, symbolically(t, b))
	asked := map[string]string{}
	for _, g := range stageRows[schema.GradingRow](t, b, schema.StageGrade) {
		require.Regexp(t, `^sympy \d+\.\d+`, g.Grader)
		asked[g.Answer] = g.Verdict
	}
	require.Equal(t, map[string]string{"x+1": "equal", "x+2": "different", "north": "unreadable", "2": "different"},
		asked)
	found := map[string]bool{}
	for _, r := range stageRows[schema.RewardRow](t, b, schema.StageReward) {
		found[r.Verdict] = r.Success
	}
	require.Equal(t, map[string]bool{"symbolic": true, "exact": true, "wrong": false}, found)
	noFaults(t, b)

	// The reward is a function of the record: a machine without a sandbox computes the same bytes.
	again, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward"})
	require.NoError(t, err)
	for _, s := range again.Stages {
		require.True(t, s.Same, s.Stage)
	}
	checked, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Check: true})
	require.NoError(t, err)
	require.Empty(t, checked.Check.Differs)
	require.Positive(t, checked.Check.Shards)
	noFaults(t, b)

	// Without its gradings the reward differs, and the record is still consistent.
	off, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
		Set: []string{"reward.symbolic=false"}})
	require.NoError(t, err)
	require.False(t, off.Stages[0].Same)
	noFaults(t, b)
}

func TestEqualPairsAreOneCall(t *testing.T) {
	a := &algebra{}
	b := algebraic(t, a)
	require.NoError(t, symbolically(t, b))
	delete(a.calls, "x+1") // the run also asked for this one before it began
	require.Equal(t, map[string]int{"x+2": 1, "north": 1, "2": 1}, a.calls)
}

// A time-out is retried. A second time-out makes the answer unreadable, which counts as neither right nor wrong.
func TestATimeOutOfTheComparisonIsUnreadable(t *testing.T) {
	for times, verdict := range map[int]string{1: "different", 2: "unreadable"} {
		a := &algebra{timeouts: map[string]int{"x+2": times}}
		b := algebraic(t, a)
		require.NoError(t, symbolically(t, b))
		require.Equal(t, 2, a.calls["x+2"], "once more by itself")
		rewards := stageRows[schema.RewardRow](t, b, schema.StageReward)
		require.Len(t, rewards, 24)
		verdicts := map[string]string{}
		graded := map[string]string{}
		for _, g := range stageRows[schema.GradingRow](t, b, schema.StageGrade) {
			verdicts[g.Answer], graded[g.TrajectoryID] = g.Verdict, g.Answer
		}
		require.Equal(t, verdict, verdicts["x+2"])
		for _, r := range rewards {
			require.False(t, graded[r.TrajectoryID] == "x+2" && r.Success, "%+v", r)
		}
		noFaults(t, b)
		again, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Through: "reward"})
		require.NoError(t, err)
		require.True(t, again.Stages[0].Same)
	}
}

func TestSymbolicGradingIsRefused(t *testing.T) {
	// On a machine without sympy: before anything is written.
	b := algebraic(t, &algebra{absent: true})
	require.ErrorContains(t, symbolically(t, b),
		"reward.symbolic: the sandbox has no interpreter with numpy, sympy and mpmath: "+
			"tools/sandbox-python.sh makes one in .tools")
	objects, err := b.store.List(context.Background(), schema.RunPrefix("r"))
	require.NoError(t, err)
	require.Empty(t, objects)

	// In a replay of a step that asked no questions.
	b = algebraic(t, &algebra{})
	require.NoError(t, symbolically(t, b, "reward.symbolic=false"))
	head, _, _, err := b.record.Head(t.Context(), "r", "1")
	require.NoError(t, err)
	require.NotContains(t, head.Stages, schema.StageGrade)
	before := keys(t, b.store)
	_, err = runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
		Set: []string{"reward.symbolic=true"}})
	require.ErrorContains(t, err,
		"reward.symbolic: step 1 of run r has committed no gradings, which a replay cannot make, for it needs the "+
			"sandbox; run the recipe again")
	require.Equal(t, before, keys(t, b.store))
	_, err = runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "grade"})
	require.ErrorContains(t, err,
		"from: grade cannot be replayed: it asks the sandbox; replay from reward")
}

// Verify detects gradings that are lost.
func TestVerifyFindsLostGradings(t *testing.T) {
	b := algebraic(t, &algebra{})
	require.NoError(t, symbolically(t, b))
	head, _, _, err := b.record.Head(t.Context(), "r", "1")
	require.NoError(t, err)
	graded, err := b.record.Read(t.Context(), head.Stages[schema.StageGrade][0])
	require.NoError(t, err)
	require.NoError(t, b.store.Delete(t.Context(), graded.Parts[0].Key))
	found, err := verify.Run(t.Context(), b.store, "r")
	require.NoError(t, err)
	require.NotEmpty(t, found.Faults)
	require.Equal(t, graded.Parts[0].Key, found.Faults[0].Key)
}
