package batch

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// A small step: two groups of two trajectories, with one and two turns. A turn has two tokens of context and two
// tokens of the policy.
var smallRewards = []float64{1, 0, 0.5, 1}

func smallStep() (selection []schema.SelectionRow, rewards []schema.RewardRow, turns []schema.TurnRow) {
	for n, reward := range smallRewards {
		group, id := schema.GroupID(1, n/2), schema.TrajectoryID(1, n/2, n%2)
		selection = append(selection, schema.SelectionRow{GroupID: group, TrajectoryID: id, Kept: true, Count: 1,
			Weight: 1})
		rewards = append(rewards, schema.RewardRow{GroupID: group, TrajectoryID: id, Reward: reward, Verdict: "wrong"})
		for turn := range n%2 + 1 {
			first := int32(10*n + 4*turn)
			turns = append(turns, schema.TurnRow{
				GroupID: group, TrajectoryID: id, Turn: int32(turn), ContextTokens: 2,
				TokenIDs: []int32{first, first + 1, first + 2, first + 3},
				LossMask: []int32{0, 0, 1, 1}, LogProbs: []float32{0, 0, -1, -0.5}, Entropies: []float32{0, 0, 1, 2},
				Finish: "stop", PolicyVersion: "p",
				Observation: map[int]string{0: "", 1: "\n7"}[turn], Response: "a",
				AnchorHash: []string{"start", "later" + id}[turn],
				// The first turn of each trajectory is invalid.
				ToolCalls: 1, ParsedCalls: new(int32(turn)), Wrapped: new(true),
			})
		}
	}
	return selection, rewards, turns
}

// smallOutputs are the token outputs of a step's trajectories: −t/10, t/5, −t/8 and t/4 for token t.
func smallOutputs(selection []schema.SelectionRow, turns []schema.TurnRow) []schema.TokenOutputsRow {
	var out []schema.TokenOutputsRow
	for _, s := range Unmasked(selection, turns) {
		row := schema.TokenOutputsRow{GroupID: s.GroupID, TrajectoryID: s.TrajectoryID}
		for t, m := range s.LossMask {
			x := float32(t) * float32(m)
			row.OldLogProbs, row.Entropies = append(row.OldLogProbs, -x/10), append(row.Entropies, x/5)
			row.ReferenceLogProbs, row.Values = append(row.ReferenceLogProbs, -x/8), append(row.Values, x/4)
		}
		out = append(out, row)
	}
	return out
}

// estimated runs a method, set by overrides of quickstart, over the small step.
func estimated(t *testing.T, change func([]schema.SelectionRow), set ...string) *estimation {
	t.Helper()
	resolved, err := recipes.Resolve("quickstart", "", append([]string{"resample.vspo=null", "resample.roc=null"},
		set...), nil, nil)
	require.NoError(t, err)
	recipe := &resolved.Recipe
	require.Empty(t, recipe.Planned())
	selection, rewards, turns := smallStep()
	if change != nil {
		change(selection)
	}
	kept, err := Kept(selection, rewards, turns)
	require.NoError(t, err)
	require.NoError(t, JoinOutputs(kept, smallOutputs(selection, turns), recipe))
	e := &estimation{method: recipe.Method(), rows: layOut(kept, recipe.Layout, recipe.History())}
	if kl := recipe.Loss.KL(); kl != nil {
		e.beta = kl.Coefficient
	}
	require.NoError(t, e.run())
	batch := e.batch()
	schema.SortBatch(batch)
	data, err := schema.EncodeBatch(batch)
	require.NoError(t, err)
	require.NoError(t, schema.AuditShard(schema.Batch, data, len(batch)))
	for _, row := range batch {
		for i, m := range row.LossMask {
			require.False(t, math.IsNaN(float64(row.Advantages[i])))
			require.True(t, m == 1 || row.Advantages[i] == 0)
		}
	}
	return e
}

// oneEach returns the advantages of rows whose tokens all share one advantage.
func (e *estimation) oneEach(t *testing.T) []float64 {
	t.Helper()
	out := make([]float64, len(e.rows))
	for i, row := range e.advantages {
		at := slices.Index(e.rows[i].LossMask, 1)
		out[i] = row[at]
		for k, m := range e.rows[i].LossMask {
			require.Equal(t, out[i]*float64(m), row[k])
		}
	}
	return out
}

var turnNames = []advantage.Row{
	{Group: "00001/0000", Trajectory: "00001/0000/000"}, {Group: "00001/0000", Trajectory: "00001/0000/001"},
	{Group: "00001/0000", Trajectory: "00001/0000/001", Turn: 1},
	{Group: "00001/0001", Trajectory: "00001/0001/000"}, {Group: "00001/0001", Trajectory: "00001/0001/001"},
	{Group: "00001/0001", Trajectory: "00001/0001/001", Turn: 1},
}

var groupsOfFour = []string{"a", "a", "b", "b"}

func TestEstimatorsOfRows(t *testing.T) {
	must := func(out []float64, err error) []float64 {
		require.NoError(t, err)
		return out
	}
	// The first turn of each trajectory is invalid, the second is valid.
	penalised := []float64{0.9, -0.1, 0, 0.4, 0.9, 1}
	turnRows := []float64{1, 0, 0, 0.5, 1, 1}
	entropies := []float64{0.5, 0.5, 1.3, 0.5, 0.5, 1.3} // of tokens 2 and 3, and of 6 and 7, over 5
	for name, c := range map[string]struct {
		set  []string
		want []float64
	}{
		"grpo":    {nil, must(advantage.Group{Std: true}.Estimate(smallRewards, groupsOfFour))},
		"dr_grpo": {[]string{"advantage.std=false"}, []float64{0.5, -0.5, -0.25, 0.25}},
		"rloo":    {[]string{"advantage={name: rloo}"}, []float64{1, -1, -0.5, 0.5}},
		// 2, 4, 2 and 4 tokens
		"opo": {[]string{"advantage={name: opo}"}, []float64{2. / 3, -1. / 3, -1. / 3, 1. / 6}},
		"opo by turns": {[]string{"layout=turns", "advantage={name: opo, invalid_penalty: 0.1}"},
			[]float64{0.9 - 0.8/3, -0.1 - 0.8/3, -0.8 / 3, 0.4 - 2.3/3, 0.9 - 2.3/3, 1 - 2.3/3}},
		"gpg":          {[]string{"advantage={name: gpg}", "loss={name: gpg}"}, []float64{0.5, -0.5, -0.25, 0.25}},
		"gpg, as verl": {[]string{"advantage={name: gpg, idle: zero}"}, []float64{2. / 3, -2. / 3, -1. / 3, 1. / 3}},
		"grpo by turns": {[]string{"layout=turns", "advantage.std=false"}, []float64{2. / 3, -1. / 3, -1. / 3, -1. / 3,
			1. / 6, 1. / 6}},
		"grpo by turns, statistics by trajectory, penalties": {[]string{"layout=turns",
			"advantage.stats=per_trajectory", "advantage.invalid_penalty=0.1"},
			must(advantage.TurnRows{Norm: advantage.Group{Std: true},
				Stats: advantage.StatsPerTrajectory}.Estimate(penalised, turnNames))},
		"rloo by turns": {[]string{"layout=turns", "advantage={name: rloo, invalid_penalty: 0.1}"},
			must(advantage.RLOO{}.Estimate(penalised, []string{"a", "a", "a", "b", "b", "b"}))},
		"empg": {[]string{"layout=turns", "advantage={name: empg, k: 2, zeta: 0.1}"},
			modulated(t, turnRows, entropies)},
	} {
		got := estimated(t, nil, c.set...).oneEach(t)
		require.InDeltaSlice(t, c.want, got, 1e-6, name)
	}
}

func modulated(t *testing.T, scores, entropies []float64) []float64 {
	base, err := advantage.TurnRows{Norm: advantage.Group{Std: true}}.Estimate(scores, turnNames)
	require.NoError(t, err)
	rows := make([]advantage.EMPGRow, len(base))
	for i := range rows {
		rows[i] = advantage.EMPGRow{Row: turnNames[i], Entropy: entropies[i], Advantage: base[i]}
	}
	out, err := advantage.EMPG{K: 2, KPrime: 1, Zeta: 0.1}.Estimate(rows)
	require.NoError(t, err)
	return out.Advantage
}

func TestGiGPOComparesTurnsThatSawTheSame(t *testing.T) {
	rows := make([]advantage.GiGPORow, len(turnNames))
	for i, n := range turnNames {
		rows[i] = advantage.GiGPORow{Row: n, Invalid: n.Turn == 0,
			Observation: []string{"start", "later" + n.Trajectory}[n.Turn]}
	}
	rows[0].Reward, rows[2].Reward, rows[3].Reward, rows[5].Reward = 1, 0, 0.5, 1
	want, err := advantage.GiGPO{Gamma: 0.9, Omega: 0.5, Mode: advantage.ModeMeanNorm,
		InvalidPenalty: 0.1}.Estimate(rows)
	require.NoError(t, err)
	set := []string{"layout=turns", "advantage={name: gigpo, std: false, gamma: 0.9, omega: 0.5, invalid_penalty: 0.1}"}
	require.InDeltaSlice(t, want.Advantage, estimated(t, nil, set...).oneEach(t), 1e-12)
	// First turns share an anchor: 0.9 against 0.9·0 − 0.1, and 0.4 against 0.9·1 − 0.1.
	require.InDelta(t, 0.5, want.Step[0], 1e-12)
	require.InDelta(t, -0.2, want.Step[3], 1e-12)
	require.Zero(t, want.Step[2], "no other turn saw what its second turn saw")

	similar := estimated(t, nil, append(set, "advantage.anchors=similar")...).oneEach(t)
	require.InDeltaSlice(t, want.Advantage, similar, 1e-12, "as texts they are as different")
	equal := estimated(t, nil, append(set, "advantage.anchors=similar", "advantage.similarity=1")...).oneEach(t)
	require.InDeltaSlice(t, want.Advantage, equal, 1e-12)
}

func TestTurnRows(t *testing.T) {
	batch := estimated(t, nil, "layout=turns", "loss.old_log_probs=recompute", "loss.tis={cap: 2}",
		"loss.kl={coefficient: 0.1}").batch()
	require.Len(t, batch, 6)
	row := batch[2] // the second turn of the second trajectory
	require.Equal(t, int32(1), *row.Turn)
	require.Equal(t, []int32{10, 11, 12, 13, 14, 15, 16, 17}, row.TokenIDs,
		"all that the policy saw, then what it wrote")
	require.Equal(t, []int32{0, 0, 0, 0, 0, 0, 1, 1}, row.LossMask)
	require.Equal(t, []float32{0, 0, 0, 0, 0, 0, -0.6, -0.7}, row.OldLogProbs)
	require.Equal(t, []float32{0, 0, 0, 0, 0, 0, -1, -0.5}, row.RolloutLogProbs)
	require.Equal(t, []float32{0, 0, 0, 0, 0, 0, -0.75, -0.875}, row.ReferenceLogProbs)
	require.Equal(t, []int32{10, 11, 12, 13}, batch[1].TokenIDs)
	require.Equal(t, []int32{0, 0, 1, 1}, batch[1].LossMask)
	for _, row := range estimated(t, nil).batch() {
		require.Nil(t, row.Turn)
		require.Nil(t, row.Returns)
	}
}

// lists are the small step's whole trajectories with their rewards on the last token.
func lists(t *testing.T) (rewards [][]float64, outputs []schema.TokenOutputsRow, masks [][]int32) {
	t.Helper()
	selection, _, turns := smallStep()
	outputs = smallOutputs(selection, turns)
	for i, s := range Unmasked(selection, turns) {
		row := make([]float64, len(s.TokenIDs))
		row[len(row)-1] = smallRewards[i]
		rewards, masks = append(rewards, row), append(masks, s.LossMask)
	}
	return rewards, outputs, masks
}

func wide(rows []schema.TokenOutputsRow, of func(schema.TokenOutputsRow) []float32) [][]float64 {
	out := make([][]float64, len(rows))
	for i, r := range rows {
		for _, v := range of(r) {
			out[i] = append(out[i], float64(v))
		}
	}
	return out
}

func TestEstimatorsOfTokens(t *testing.T) {
	rewards, outputs, masks := lists(t)
	names := make([]advantage.Row, len(outputs))
	for i, o := range outputs {
		names[i] = advantage.Row{Group: o.GroupID, Trajectory: o.TrajectoryID}
	}
	_, reinforced, err := advantage.ReinforcePP{Gamma: 0.9}.Estimate(rewards, masks)
	require.NoError(t, err)
	require.Equal(t, reinforced, estimated(t, nil, "advantage={name: reinforce_pp, gamma: 0.9}").advantages)

	baseline, err := advantage.ReinforcePPBaseline{}.Estimate(smallRewards, groupsOfFour, masks)
	require.NoError(t, err)
	require.Equal(t, baseline, estimated(t, nil, "advantage={name: reinforce_pp_baseline}").advantages)

	perRow, err := advantage.Group{Std: true}.Estimate(smallRewards, groupsOfFour)
	require.NoError(t, err)
	entropies := wide(outputs, func(o schema.TokenOutputsRow) []float32 { return o.Entropies })
	_, aware, err := advantage.AEPO{Weight: 0.3, Scope: advantage.ScopeTrajectory,
		Form: advantage.FormPower}.Estimate(names, perRow, entropies, masks)
	require.NoError(t, err)
	require.Equal(t, aware,
		estimated(t, nil, "advantage.entropy_aware={weight: 0.3, scope: trajectory, form: power}").advantages)

	values := wide(outputs, func(o schema.TokenOutputsRow) []float32 { return o.Values })
	want, err := advantage.GAE{Gamma: 1, Lambda: 0.9}.Estimate(rewards, values, masks)
	require.NoError(t, err)
	critic := []string{"advantage={name: gae, lambda: 0.9}", "loss.value={}"}
	e := estimated(t, nil, critic...)
	require.Equal(t, want.Whitened, e.advantages)
	for i, row := range e.batch() {
		require.Equal(t, outputs[i].Values, row.Values)
		for k, m := range row.LossMask {
			require.InDelta(t, want.Returns[i][k]*float64(m), float64(row.Returns[k]), 1e-6)
		}
	}
}

func TestKLInTheReward(t *testing.T) {
	rewards, outputs, masks := lists(t)
	old := wide(outputs, func(o schema.TokenOutputsRow) []float32 { return o.OldLogProbs })
	reference := wide(outputs, func(o schema.TokenOutputsRow) []float32 { return o.ReferenceLogProbs })
	penalised, mean, err := loss.KLReward{Estimator: loss.K2, Beta: 0.2}.Apply(rewards, old, reference, masks)
	require.NoError(t, err)
	_, want, err := advantage.ReinforcePP{Gamma: 1}.Estimate(penalised, masks)
	require.NoError(t, err)
	e := estimated(t, nil, "advantage={name: reinforce_pp}", "loss.old_log_probs=recompute",
		"loss.kl={in: reward, coefficient: 0.2, estimator: k2, controller: adaptive, target: 0.001, horizon: 8}")
	require.Equal(t, want, e.advantages)
	require.Equal(t, mean, e.stats[statKL])
	require.Equal(t, 0.2, e.stats[statKLCoefficient])
	require.InDelta(t, 0.2*(1+0.2*4/8), e.stats[statKLCoefficientTo], 1e-12,
		"far above its target, over four trajectories")
	require.Nil(t, e.batch()[0].ReferenceLogProbs, "the update has no term of it")
}

// A masked trajectory's reward counts, and its tokens do not.
func TestMaskedTrajectoriesAreInTheStatistics(t *testing.T) {
	mask := func(selection []schema.SelectionRow) { selection[1].Masked = new("overlong") }
	plain, masked := estimated(t, nil).batch(), estimated(t, mask).batch()
	require.Equal(t, plain[0], masked[0])
	require.NotContains(t, masked[1].LossMask, int32(1))
	for _, set := range [][]string{
		{"layout=turns", "advantage={name: empg}"}, {"advantage={name: reinforce_pp}"},
		{"advantage={name: reinforce_pp_baseline}"},
		{"advantage={name: gae}", "loss.value={}"}, {"layout=turns", "advantage={name: gigpo}"},
		{"advantage.entropy_aware={}"},
	} {
		for _, row := range estimated(t, mask, set...).batch() {
			if row.TrajectoryID == schema.TrajectoryID(1, 0, 1) {
				require.NotContains(t, row.LossMask, int32(1), set)
			}
		}
	}
	everything := func(selection []schema.SelectionRow) {
		for i := range selection {
			selection[i].Masked = new("void_turn")
		}
	}
	for _, set := range [][]string{nil, {"advantage={name: reinforce_pp}"}, {"layout=turns", "advantage={name: empg}"},
		{"advantage={name: gae}", "loss.value={}"}} {
		estimated(t, everything, set...)
	}
}

// The weight ω of VSPO multiplies the estimator's advantages; returns are not weighted.
func TestWeightsMultiplyAdvantages(t *testing.T) {
	heavy := func(selection []schema.SelectionRow) { selection[2].Count, selection[2].Weight = 2, 1.5 }
	set := []string{"advantage={name: gae}", "loss.value={}"}
	plain, weighed := estimated(t, nil, set...).batch()[2], estimated(t, heavy, set...).batch()[2]
	require.Equal(t, plain.Returns, weighed.Returns)
	require.Equal(t, int32(2), weighed.Count)
	for i := range plain.Advantages {
		require.InDelta(t, 1.5*float64(plain.Advantages[i]), float64(weighed.Advantages[i]), 1e-6)
	}
}

func TestNothingKept(t *testing.T) {
	for _, name := range []string{"grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline", "gae", "gigpo", "empg"} {
		e := &estimation{method: method.Method{Layout: method.Turns, Advantage: method.Advantage{Name: name}}}
		require.NoError(t, e.run(), name)
		require.Empty(t, e.batch())
	}
}

func TestAnUnknownValidityIsRefused(t *testing.T) {
	e := &estimation{
		method: method.Method{Layout: method.Turns,
			Advantage: method.Advantage{Name: "grpo", Params: choice.Params{"invalid_penalty": 0.1}}},
		rows: []trainingRow{{BatchRow: schema.BatchRow{TrajectoryID: "x"}, turn: &turnFacts{}}},
	}
	require.ErrorContains(t, e.run(), "whether turn 0 of trajectory x is valid")
}

// An adaptive penalty in the loss is measured on the rows and does not change the advantages; a constant penalty is
// not measured.
func TestKLInTheLossAdapts(t *testing.T) {
	plain := estimated(t, nil, "loss.kl={coefficient: 0.5}")
	require.Nil(t, plain.stats)
	// Δ of token t is t/8 − t/10: the mean over tokens 2 and 3 of one turn, and over tokens 2, 3, 6 and 7 of two
	// turns.
	mean := (2*2.5/40 + 2*4.5/40) / 4
	for layout, mean := range map[string]float64{"trajectory": mean, "turns": (4*2.5/40 + 2*6.5/40) / 6} {
		e := estimated(t, nil, "layout="+layout, "loss.old_log_probs=recompute",
			"loss.kl={coefficient: 0.5, estimator: k1, controller: adaptive, target: 0.08, horizon: 100}")
		require.InDelta(t, mean, e.stats[statKL], 1e-7)
		require.Equal(t, 0.5, e.stats[statKLCoefficient])
		require.InDelta(t, 0.5*(1+min(mean/0.08-1, 0.2)*4/100), e.stats[statKLCoefficientTo], 1e-7)
		if layout == "trajectory" {
			require.Equal(t, plain.advantages, e.advantages)
		}
	}
}

// The policy has written masked tokens too: their length counts in the baseline, as the reward does.
func TestLengthsOfMaskedTrajectories(t *testing.T) {
	e := estimated(t, func(s []schema.SelectionRow) { s[1].Masked = new("overlong") }, "advantage={name: opo}")
	require.InDelta(t, 2./3, e.advantages[0][2], 1e-12)
	require.Equal(t, []int{2, 4, 2, 4}, each(e.rows, func(r *trainingRow) int { return r.written }))
}

// longStep is one trajectory of four turns, each with two tokens of context and two tokens of the policy, the last of
// which closes the turn.
func longStep() ([]schema.SelectionRow, []schema.RewardRow, []schema.TurnRow) {
	group, id := schema.GroupID(1, 0), schema.TrajectoryID(1, 0, 0)
	var turns []schema.TurnRow
	for k := range int32(4) {
		turns = append(turns, schema.TurnRow{
			GroupID: group, TrajectoryID: id, Turn: k, ContextTokens: 2,
			TokenIDs: []int32{4 * k, 4*k + 1, 4*k + 2, 4*k + 3}, LossMask: []int32{0, 0, 1, 1},
			LogProbs: []float32{0, 0, -float32(k), -0.5}, Observation: "o" + string('0'+k),
			Response: "r" + string('0'+k), AnchorHash: "a", Wrapped: new(true), ParsedCalls: new(int32(1)),
		})
	}
	return []schema.SelectionRow{{GroupID: group, TrajectoryID: id, Kept: true, Count: 1, Weight: 1}},
		[]schema.RewardRow{{GroupID: group, TrajectoryID: id, Reward: 1}}, turns
}

// With a history, a turn's row holds the task, the end of the turn before the held turns, and the held turns. Joining
// the rows gives the same trajectory again.
func TestTurnRowsWithAHistory(t *testing.T) {
	kept, err := Kept(longStep())
	require.NoError(t, err)
	first := [][]int32{{0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	type prompts struct {
		tokens [][]int32
		seen   []string
	}
	all := prompts{first, []string{"o0", "o0r0o1", "o0r0o1r1o2", "o0r0o1r1o2r2o3"}}
	latest := prompts{[][]int32{first[0], first[1], {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		{0, 1, 7, 8, 9, 10, 11, 12, 13, 14, 15}}, []string{"o0", "o0r0o1", "o1r1o2", "o2r2o3"}}
	two := prompts{[][]int32{first[0], first[1], first[2], {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		[]string{"o0", "o0r0o1", "o0r0o1r1o2", "o1r1o2r2o3"}}
	none := prompts{[][]int32{first[0], {0, 1, 3, 4, 5, 6, 7}, {0, 1, 7, 8, 9, 10, 11}, {0, 1, 11, 12, 13, 14, 15}},
		[]string{"o0", "o1", "o2", "o3"}}
	for history, want := range map[rollout.History]prompts{
		{}: all, {Turns: 1}: latest, {Turns: 2}: two, {Turns: 3}: all,
		{Tokens: 1}: none, {Tokens: 6}: {[][]int32{first[0], first[1], none.tokens[2], none.tokens[3]},
			[]string{"o0", "o0r0o1", "o2", "o3"}},
		{Tokens: 7}: latest, {Tokens: 11}: two, {Tokens: 12}: all, {Turns: 2, Tokens: 7}: latest,
	} {
		rows := layOut(kept, method.Turns, history)
		require.Len(t, rows, 4)
		for k, row := range rows {
			n := len(want.tokens[k])
			require.Equal(t, want.tokens[k], row.TokenIDs, "history %+v, turn %d", history, k)
			require.Equal(t, append(make([]int32, n-2), 1, 1), row.LossMask)
			require.Equal(t, append(make([]float32, n-2), -float32(k), -0.5), row.OldLogProbs)
			require.Equal(t, want.seen[k], row.turn.seen)
		}

		selection, _, turns := longStep()
		pieces := CutPieces(Unmasked(selection, turns), turns, history)
		asked := make([][]float32, len(pieces.Tokens()))
		// A token's output depends on the token and on how many tokens before it the model saw.
		for i, tokens := range pieces.Tokens() {
			for at, token := range tokens {
				asked[i] = append(asked[i], float32(token)+float32(at)/100)
			}
			if history != (rollout.History{}) {
				require.Equal(t, rows[i].TokenIDs, tokens, "the models see what the policy saw")
			}
		}
		outputs, err := pieces.Join(policy.RolePolicy, policy.TokenOutputs{LogProbs: asked})
		require.NoError(t, err)
		said := outputs.LogProbs[0]
		for k, row := range rows {
			n := len(row.TokenIDs)
			require.Equal(t, float32(4*k+3)+float32(n-1)/100, said[4*k+3])
			require.Equal(t, float32(4*k+2)+float32(n-2)/100, said[4*k+2])
		}
	}
}

// GiGPO's step returns depend on each turn's reward, and its anchors are those that the recipe names.
func TestTurnRewardsReachTheEstimator(t *testing.T) {
	resolved, err := recipes.Resolve("sokoban", "", []string{"advantage.invalid_penalty=0", "advantage.std=false"}, nil,
		nil)
	require.NoError(t, err)
	row := func(trajectory string, turn int, seen, situation string, paid float64) trainingRow {
		r := trainingRow{turn: &turnFacts{valid: true, known: true, seenHash: seen, situation: situation, paid: &paid,
			last: turn == 1}}
		r.name.Group, r.name.Trajectory, r.name.Turn = "g", trajectory, turn
		r.GroupID, r.TrajectoryID = "g", trajectory
		r.TokenIDs, r.LossMask = []int32{1, 2}, []int32{0, 1}
		return r
	}
	rows := []trainingRow{row("a", 0, "s", "1", 0), row("a", 1, "n", "2", 10), row("b", 0, "s", "1", -1),
		row("b", 1, "n", "3", 0)}
	for i, total := range []float64{10, 10, -1, -1} {
		rows[i].reward = total
	}
	advantages := func(set ...string) ([]float64, map[string]float64) {
		r, err := recipes.ResolveCommitted(&resolved.Recipe, set)
		require.NoError(t, err)
		e := estimation{method: r.Recipe.Method(), rows: rows}
		require.NoError(t, e.run())
		out := make([]float64, len(rows))
		for i := range rows {
			out[i] = e.advantages[i][1]
		}
		return out, e.stats
	}
	// Episode: 10 and −1, minus their mean. Steps: G_0 = e_0 + 0.95·e_1 is 9.5 and −1, G_1 is 10 and 0; "n" is the
	// observation of two states.
	got, stats := advantages()
	require.InDeltaSlice(t, []float64{5.5 + 5.25, 5.5 + 5, -5.5 - 5.25, -5.5 - 5}, got, 1e-9)
	require.InDelta(t, 0.5, stats[StatShared], 1e-12)
	got, _ = advantages("advantage.anchor=state")
	require.InDeltaSlice(t, []float64{5.5 + 5.25, 5.5, -5.5 - 5.25, -5.5}, got, 1e-9)
}
