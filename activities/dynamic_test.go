package activities

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

var dynamicRecipe = []string{"resample.roc=null", "resample.dynamic.tries=3", "resample.dynamic.refill=new"}

// dynamicBench is a step whose recipe samples in rounds of benchGroups groups.
func dynamicBench(t *testing.T, set ...string) *stepBench {
	t.Helper()
	return stepWith(t, nil, nil, append(dynamicRecipe, set...)...)
}

func (b *stepBench) round(round int) (schema.Ref, []schema.PromptRow) {
	b.t.Helper()
	out, err := do(b, data.NewSelectPrompts(b.deps).Execute, api.PromptsInput{Scope: b.scope, Round: &round})
	require.NoError(b.t, err)
	return out.Manifest, rowsAt[schema.PromptRow](b, out.Manifest)
}

func TestRoundsOfPrompts(t *testing.T) {
	b := dynamicBench(t)
	problems := map[string]bool{}
	for round := range 3 {
		ref, rows := b.round(round)
		m, err := b.deps.Record.Read(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, round, m.Shard)
		require.Equal(t, fmt.Sprint(round*benchGroups), m.Note["ledger_from"])
		require.Equal(t, fmt.Sprint((round+1)*benchGroups), m.Note["ledger_to"])
		require.Len(t, rows, benchGroups)
		for i, r := range rows {
			require.Equal(t, schema.GroupID(1, round*benchGroups+i), r.GroupID)
			problems[r.Problem] = true
		}
	}
	require.Greater(t, len(problems), 2*benchGroups, "they are new ones")
	b.scope.Step = 2
	ref, _ := b.round(1)
	m, err := b.deps.Record.Read(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "16", m.Note["ledger_from"], "step 1 may have taken 12")
}

func TestRoundsOfTheSamePrompts(t *testing.T) {
	b := dynamicBench(t, "resample.dynamic.refill=same")
	_, first := b.round(0)
	ref, again := b.round(2)
	for i, r := range again {
		require.Equal(t, schema.GroupID(1, 2*benchGroups+i), r.GroupID)
		require.Equal(t, first[i].Problem, r.Problem)
		require.Equal(t, first[i].TokenIDs, r.TokenIDs)
	}
	m, err := b.deps.Record.Read(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "0", m.Note["ledger_from"])
}

// A step that samples once commits the same as before rounds existed.
func TestPromptsWithoutRounds(t *testing.T) {
	b := stepOf(t, nil, nil)
	b.scope.Step = 2
	out, err := do(b, data.NewSelectPrompts(b.deps).Execute, api.PromptsInput{Scope: b.scope})
	require.NoError(t, err)
	m, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	require.Equal(t, schema.At("r", 2, schema.StagePrompts), m.Place)
	require.Equal(t, map[string]string{"ledger_from": "4", "ledger_to": "8", schema.NoteResult: "{}"}, m.Note)
	require.Nil(t, prepare.PlanOf(recipeOf(b)).Dynamic)
	require.NotContains(t, prepare.PlanOf(recipeOf(b)).Chain, "dynamic sampling")
}

func recipeOf(b *stepBench) recipes.Recipe {
	recipe, err := b.deps.Recipes.Recipe(b.t.Context(), b.scope)
	require.NoError(b.t, err)
	return *recipe
}

// Evaluations run alongside steps if the engine that generates does not train, and prompts are selected ahead unless
// they depend on the steps before.
func TestPlanOfWhatRunsAlongside(t *testing.T) {
	r := recipeOf(stepOf(t, nil, nil))
	require.Equal(t, api.EvaluateAlongside, prepare.PlanOf(r).Evaluations)
	require.True(t, prepare.PlanOf(r).PromptsAhead)
	pipelined := r
	pipelined.Pipeline = &recipes.Pipeline{MaxStaleness: 1}
	require.True(t, prepare.PlanOf(pipelined).PromptsAhead)
	torch := r
	torch.Engine.Kind = "torch"
	require.Equal(t, api.EvaluateBetween, prepare.PlanOf(torch).Evaluations)
	torch.Engine.Servers = []servers.Server{{}}
	require.Equal(t, api.EvaluateAlongside, prepare.PlanOf(torch).Evaluations)
	require.False(t, prepare.PlanOf(recipeOf(dynamicBench(t))).PromptsAhead)
	unsolved := recipeOf(stepWith(t, nil, nil, "schedule.stages=[{from_step: 3, problems: unsolved, samples: 2}]"))
	require.False(t, prepare.PlanOf(unsolved).PromptsAhead)
}

func TestPlanOfRounds(t *testing.T) {
	b := dynamicBench(t, "resample.dynamic.cold_start_steps=7")
	require.Equal(t, &api.Dynamic{Target: benchGroups, Tries: 3, ColdStart: 7}, prepare.PlanOf(recipeOf(b)).Dynamic)
	require.Contains(t, prepare.PlanOf(recipeOf(b)).Chain, "dynamic sampling")
}

// reward commits the reward stage of a shard of two groups: the named groups are informative, and all trajectories of
// the other groups have reward 0.
func (b *stepBench) reward(shard int, informative ...int) schema.Ref {
	b.t.Helper()
	var rows []schema.RewardRow
	for group := shard * 2; group < shard*2+2; group++ {
		for sample := range benchSamples {
			r := rewardRow(group, 1)
			for _, g := range informative {
				if g == group {
					r = rewardRow(group, sample)
				}
			}
			r.TrajectoryID = schema.TrajectoryID(1, group, sample)
			rows = append(rows, r)
		}
	}
	return commitRows(b, schema.At("r", 1, schema.StageReward).WithShard(shard), rows)
}

// groupFates says for each group whether it was kept, and why not.
func groupFates(rows []schema.SelectionRow) (out []string) {
	for i, r := range rows {
		if i%benchSamples == 0 {
			out = append(out, r.Reason)
		}
	}
	return out
}

func TestResampleOverRounds(t *testing.T) {
	b := dynamicBench(t)
	rewards := b.stage(schema.StageReward, -1, b.reward(0, 1), b.reward(1), b.reward(2, 4), b.reward(3), b.reward(4, 8),
		b.reward(5, 11))
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute, b.rewarded(rewards))
	require.NoError(t, err)
	zero := string(resample.ZeroVariance)
	require.Equal(t, []string{zero, "", zero, zero, "", zero, zero, zero, "", zero, zero, ""},
		groupFates(rowsAt[schema.SelectionRow](b, out.Manifest)))
	require.Equal(t, map[string]int{zero: 8 * benchSamples}, out.Reasons)
	require.Equal(t, []int{4, 8}, []int{out.KeptGroups, out.DroppedGroups})
}

func TestResampleFillsUpTheLastRoundAndCutsSurplus(t *testing.T) {
	b := dynamicBench(t, "resample.dynamic.tries=2")
	rewards := b.stage(schema.StageReward, -1, b.reward(0, 1), b.reward(1), b.reward(2), b.reward(3, 7))
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute, b.rewarded(rewards))
	require.NoError(t, err)
	zero := string(resample.ZeroVariance)
	require.Equal(t, []string{zero, "", zero, zero, "", "", zero, ""},
		groupFates(rowsAt[schema.SelectionRow](b, out.Manifest)))

	b = dynamicBench(t)
	rewards = b.stage(schema.StageReward, -1, b.reward(0, 0, 1), b.reward(1, 2), b.reward(2, 5), b.reward(3, 6))
	out, err = do(b, learn.Resample{Worker: b.deps}.Execute, b.rewarded(rewards))
	require.NoError(t, err)
	surplus := string(resample.DynamicSurplus)
	require.Equal(t, []string{"", "", "", zero, zero, "", surplus, zero},
		groupFates(rowsAt[schema.SelectionRow](b, out.Manifest)))
}

// RoC thins the groups that fill up the last round like any other, and drops none of them.
func TestRoCKeepsWhatDynamicSamplingFillsUpWith(t *testing.T) {
	for name, c := range map[string]struct {
		set  []string
		gone []bool // groups without a kept row
	}{
		"filled up":    {[]string{"resample.dynamic.tries=1"}, []bool{false, false, false, false}},
		"a cold start": {[]string{"resample.dynamic.cold_start_steps=1"}, []bool{false, false, false, false}},
		"once":         {nil, []bool{true, false, true, true}}, // without dynamic sampling, such groups teach nothing
	} {
		t.Run(name, func(t *testing.T) {
			b := stepWith(t, nil, nil, c.set...)
			out, err := do(b, learn.Resample{Worker: b.deps}.Execute,
				b.rewarded(b.stage(schema.StageReward, -1, b.reward(0, 1), b.reward(1))))
			require.NoError(t, err)
			kept := make([]int, benchGroups)
			for i, r := range rowsAt[schema.SelectionRow](b, out.Manifest) {
				if r.Kept {
					kept[i/benchSamples]++
				}
			}
			for g, gone := range c.gone {
				want := 4
				if gone {
					want = 0
				}
				require.Equal(t, want, kept[g], "group %d", g)
			}
		})
	}
}

func TestResampleOfAColdStartKeepsEveryGroup(t *testing.T) {
	b := dynamicBench(t, "resample.dynamic.cold_start_steps=1")
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute,
		b.rewarded(b.stage(schema.StageReward, -1, b.reward(0), b.reward(1, 3))))
	require.NoError(t, err)
	require.Equal(t, benchGroups, out.KeptGroups)
}

// A skipped shard of a later round is recorded like any other.
func TestResampleWithoutAShardOfALaterRound(t *testing.T) {
	b := dynamicBench(t, "resample.dynamic.tries=2")
	b.scope.Gen = 1 // the bench has prompts of generation 0
	first, _ := b.round(0)
	second, _ := b.round(1)
	prompts := b.stage(schema.StagePrompts, -1, first, second)
	b.scope.Gen = 0
	in := b.rewarded(b.stage(schema.StageReward, -1, b.reward(0, 1), b.reward(1), b.reward(2)),
		api.StageRef{Stage: schema.StagePrompts, Ref: prompts})
	in.Excluded = []api.ExcludedShard{{Shard: 3, Stage: schema.StageRollout, Reason: "lost"}}
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	zero := string(resample.ZeroVariance)
	rows := rowsAt[schema.SelectionRow](b, out.Manifest)
	require.Equal(t, []string{zero, "", zero, zero, "", "", "excluded", "excluded"}, groupFates(rows))
	require.Equal(t, "shard 3 was skipped after its rollout failed: lost", *rows[len(rows)-1].Excluded)
}

func TestScoredCountsInformativeGroupsWhereItMatters(t *testing.T) {
	for name, c := range map[string]struct {
		bench *stepBench
		want  int
	}{"in rounds": {dynamicBench(t), 1}, "once": {stepOf(t, nil, nil), 0}} {
		b := c.bench
		var rows []schema.TrajectoryRow
		for group := range 2 {
			for sample := range benchSamples {
				row := schema.TrajectoryRow{GroupID: schema.GroupID(1, group),
					TrajectoryID: schema.TrajectoryID(1, group, sample), ProblemID: "p", Source: "s",
					Finish: "answered", Gold: "7", Text: "<answer>\\boxed{7}</answer>"}
				if group == 0 && sample == 2 {
					row.Text = "<answer>\\boxed{8}</answer>"
				}
				rows = append(rows, row)
			}
		}
		out, err := do(b, verdict.ScoreRewards{Worker: b.deps}.Execute,
			api.ScoreInput{Scope: b.scope,
				Trajectories: commitRows(b, schema.At("r", 1, schema.StageAssemble).WithShard(0), rows)})
		require.NoError(t, err)
		require.Equal(t, c.want, out.Informative, name)
		m, err := b.deps.Record.Read(t.Context(), out.Manifest)
		require.NoError(t, err)
		if c.want == 0 {
			require.NotContains(t, m.Note[schema.NoteResult], "informative")
		}
	}
}

// A step asks for exactly the rounds that the rule for judging them asks for.
func TestTheStepAndTheSelectionAgreeOnRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		d := resample.DynamicSampling{Target: 1 + r.IntN(4), Tries: 1 + r.IntN(4), ColdStart: r.IntN(3)}
		asks := api.Dynamic{Target: d.Target, Tries: d.Tries, ColdStart: d.ColdStart}
		step, a, informative := 1+r.IntN(4), resample.Accumulation{}, 0
		for rounds := 1; !a.Done; rounds++ {
			var batch []resample.Outcome
			for g := range d.Target {
				o := resample.Outcome{GroupID: fmt.Sprint(rounds, " ", g), Informative: r.IntN(2) == 0}
				if o.Informative {
					informative++
				}
				batch = append(batch, o)
			}
			var err error
			a, _, err = d.Advance(a, step-1, batch)
			require.NoError(t, err)
			require.Equal(t, a.Done, asks.Enough(step, rounds, informative), "%+v, step %d, %d rounds, %d informative",
				d, step, rounds, informative)
		}
	}
}
