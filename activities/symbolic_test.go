package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/pipelinetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote/zygotetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// algebra is a sandbox with a fake sympy: it answers calls of the set sympy by their answer, passes other calls on,
// and counts the calls that it answered.
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
		a.calls[p.Answer]++
		if a.timeouts[p.Answer] > 0 {
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
	objects := mem.New()
	deps := pipelinetest.Deps(t, objects,
		pipelinetest.Wrap{Sandbox: func(e sandbox.Executor) sandbox.Executor { a.Executor = e; return a }})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

// withSympy is a worker whose sandbox has sympy: that of ROPEWALK_SANDBOX_PYTHON.
func withSympy(t *testing.T) *bench {
	t.Helper()
	e := zygotetest.WithSympy(t, sandbox.TierLandlock)
	objects := mem.New()
	deps := pipelinetest.Deps(t, objects,
		pipelinetest.Wrap{Sandbox: func(sandbox.Executor) sandbox.Executor { return e }})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

// solutions is a file of questions, each with its gold and its four answers.
func solutions(questions ...[5]string) string {
	var lines []string
	for i, q := range questions {
		item := map[string]any{"question": fmt.Sprintf("question %d", i), "ground_truth": "2*3=<<2*3=6>>6\nA: " + q[0]}
		for k, system := range []string{"6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"} {
			item[system] = map[string]any{"is_correct": false, "solution": "2*3 = <<2*3=6>>6\nA: " + q[1+k]}
		}
		line, _ := json.Marshal(item)
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}

var questions = solutions(
	[5]string{"1+x", "x+1", "x+2", "1+x", "x+1"},
	[5]string{"1+x", "north", "x+1", "2", "x+1"},
	[5]string{"7", "7", "8", "7.0", "9"})

var symbolically = workflows.ReprocessInput{Run: "r", Recipe: "gsm8k-offline", Format: "gsm8k-solutions",
	Set: []string{"reward.symbolic=true", "resample={}"}}

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
	found, err := analysis.New(b.store).Verify(t.Context(), "r")
	require.NoError(t, err)
	require.Empty(t, found.Faults)
}

func verdicts(rows []schema.RewardRow) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Verdict)
	}
	return out
}

func TestAnswersAreGradedInTheSandbox(t *testing.T) {
	b := withSympy(t)
	out, err := b.reprocess(t, symbolically, questions)
	require.NoError(t, err)
	require.Equal(t, []any{12, 7, 0}, []any{out.Trajectories, out.Rewarded, out.Excluded})

	gradings := stageRows[schema.GradingRow](t, b, api.StageGrade)
	var asked []string
	for _, g := range gradings {
		require.Regexp(t, `^sympy \d+\.\d+`, g.Grader)
		asked = append(asked, g.TrajectoryID[6:]+" "+g.Answer+" "+g.Verdict)
	}
	require.Equal(t, []string{"0000/000 x+1 equal", "0000/001 x+2 different", "0000/003 x+1 equal",
		"0001/000 north unreadable", "0001/001 x+1 equal", "0001/002 2 different", "0001/003 x+1 equal"}, asked)
	require.Equal(t, []string{"symbolic", "wrong", "exact", "symbolic", "wrong", "symbolic", "wrong", "symbolic",
		"exact", "wrong", "rational", "wrong"},
		verdicts(stageRows[schema.RewardRow](t, b, api.StageReward)))
	noFaults(t, b)

	// The reward is a function of the record: a machine without a sandbox computes the same bytes.
	again, err := replay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward"})
	require.NoError(t, err)
	for _, s := range again.Stages {
		require.True(t, s.Same, s.Stage)
	}
	checked, err := replay(t, b.store, workflows.ReplayStageInput{Run: "r", Check: true})
	require.NoError(t, err)
	require.Empty(t, checked.Check.Differs)
	require.Positive(t, checked.Check.Shards)
	noFaults(t, b)

	// Without its gradings the reward differs, and the record is still consistent.
	off, err := replay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
		Set: []string{"reward.symbolic=false"}})
	require.NoError(t, err)
	require.False(t, off.Stages[0].Same)
	noFaults(t, b)
}

func TestEqualPairsAreOneCall(t *testing.T) {
	a := &algebra{}
	b := algebraic(t, a)
	_, err := b.reprocess(t, symbolically, questions)
	require.NoError(t, err)
	delete(a.calls, "x+1") // the run also asked for this one before it began
	require.Equal(t, map[string]int{"x+2": 1, "north": 1, "2": 1}, a.calls)
}

// A time-out is retried. A second time-out makes the answer unreadable, which counts as neither right nor wrong.
func TestATimeOutOfTheComparisonIsUnreadable(t *testing.T) {
	for times, verdict := range map[int]string{1: "", 2: "unreadable"} {
		a := &algebra{timeouts: map[string]int{"x+2": times}}
		b := algebraic(t, a)
		out, err := b.reprocess(t, symbolically, questions)
		require.NoError(t, err)
		require.Zero(t, out.Excluded)
		require.Equal(t, 2, a.calls["x+2"], "once more by itself")
		require.Len(t, stageRows[schema.RewardRow](t, b, api.StageReward), 12)
		for _, r := range stageRows[schema.RewardRow](t, b, api.StageReward) {
			require.False(t, r.TrajectoryID == "00001/0000/001" && r.Success, "%+v", r)
		}
		unreadable := 0
		for _, g := range stageRows[schema.GradingRow](t, b, api.StageGrade) {
			if g.Verdict == "unreadable" {
				unreadable++
			}
		}
		require.Equal(t, verdict != "", unreadable > 0, "%d gradings are unreadable after %d time-outs", unreadable,
			times)
		noFaults(t, b)
		again, err := replay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Through: "reward"})
		require.NoError(t, err)
		require.True(t, again.Stages[0].Same)
	}
}

func TestSymbolicGradingIsRefused(t *testing.T) {
	// On a machine without sympy: before anything is written.
	b := algebraic(t, &algebra{absent: true})
	_, err := b.reprocess(t, symbolically, questions)
	require.ErrorContains(t, err,
		"reward.symbolic: the sandbox has no interpreter with numpy, sympy and mpmath: "+
			"tools/sandbox-python.sh makes one in .tools")
	objects, err := b.store.List(context.Background(), schema.RunPrefix("r"))
	require.NoError(t, err)
	require.Empty(t, objects)

	// In a replay of a step that asked no questions.
	b = algebraic(t, &algebra{})
	plain := symbolically
	plain.Set = []string{"resample={}"}
	_, err = b.reprocess(t, plain, questions)
	require.NoError(t, err)
	head, _, _, err := b.record.Head(t.Context(), "r", "1")
	require.NoError(t, err)
	require.NotContains(t, head.Stages, api.StageGrade)
	before := keys(t, b.store)
	_, err = replay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
		Set: []string{"reward.symbolic=true"}})
	require.ErrorContains(t, err,
		"reward.symbolic: step 1 of run r has committed no gradings, which a replay cannot make, for it needs the "+
			"sandbox; run the recipe again")
	require.Equal(t, before, keys(t, b.store))
	_, err = replay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "grade"})
	require.ErrorContains(t, err,
		"from: grade cannot be replayed: it asks the sandbox; replay from reward")
}

// Verify detects gradings that are lost.
func TestVerifyFindsLostGradings(t *testing.T) {
	b := algebraic(t, &algebra{})
	_, err := b.reprocess(t, symbolically, questions)
	require.NoError(t, err)
	head, _, _, err := b.record.Head(t.Context(), "r", "1")
	require.NoError(t, err)
	graded, err := b.record.Read(t.Context(), head.Stages[api.StageGrade][0])
	require.NoError(t, err)
	require.NoError(t, b.store.Delete(t.Context(), graded.Parts[0].Key))
	found, err := analysis.New(b.store).Verify(t.Context(), "r")
	require.NoError(t, err)
	require.NotEmpty(t, found.Faults)
	require.Equal(t, graded.Parts[0].Key, found.Faults[0].Key)
}
