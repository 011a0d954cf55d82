package rl

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/advantage"
)

// advOutputs are the fields of a case's outputs, each to be checked once.
type advOutputs map[string]json.RawMessage

// take decodes a field and strikes it off; false where the case has none.
func (o advOutputs) take(t *testing.T, name string, into any) bool {
	t.Helper()
	raw, ok := o[name]
	if !ok {
		return false
	}
	delete(o, name)
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("read output %s: %v", name, err)
	}
	return true
}

// row checks a field of one value per row, rows one of a value per token.
func (o advOutputs) row(t *testing.T, name string, got []float64) {
	t.Helper()
	var want []float64
	if o.take(t, name, &want) {
		vectors.Equal(t, name, got, want)
	}
}

func (o advOutputs) rows(t *testing.T, name string, got [][]float64) {
	t.Helper()
	var want [][]float64
	if o.take(t, name, &want) {
		vectors.Equal(t, name, got, want)
	}
}

// done fails at fields that no test has checked.
func (o advOutputs) done(t *testing.T) {
	t.Helper()
	for name := range o {
		t.Errorf("no test checks the output %s", name)
	}
}

// advNamed gives rows ids whose canonical order is the order in which groups and trajectories appear,
// and numbers the turns of each trajectory.
func advNamed(n int, group, trajectory func(int) string) []advantage.Row {
	groups, trajectories, turns := map[string]int{}, map[[2]string]int{}, map[[2]string]int{}
	out := make([]advantage.Row, n)
	for i := range out {
		key := [2]string{group(i), trajectory(i)}
		if _, ok := groups[key[0]]; !ok {
			groups[key[0]] = len(groups)
		}
		if _, ok := trajectories[key]; !ok {
			trajectories[key] = len(trajectories)
		}
		out[i] = advantage.Row{
			Group: fmt.Sprintf("%06d", groups[key[0]]), Trajectory: fmt.Sprintf("%06d", trajectories[key]),
			Turn: turns[key],
		}
		turns[key]++
	}
	return out
}

// advAlone gives each row its own trajectory.
func advAlone(n int, group func(int) string) []advantage.Row {
	return advNamed(n, group, func(i int) string { return fmt.Sprint(i) })
}

// advEntry is s[i], or "" past the end.
func advEntry(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return ""
}

func testTurnRows(t *testing.T, c vectors.Case) {
	var in struct {
		Scores    []float64
		UID, Traj []string
		Eps       float64
		Std       *bool `json:"norm_by_std"`
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	rows := advNamed(
		len(in.Scores), func(i int) string { return advEntry(in.UID, i) }, func(i int) string { return in.Traj[i] },
	)
	norm := advantage.Group{Std: in.Std == nil || *in.Std, Epsilon: in.Eps}
	for name, stats := range map[string]advantage.Stats{"cross_steps": advantage.StatsTurnRows,
		"per_trajectory": advantage.StatsPerTrajectory} {
		got, err := advantage.TurnRows{Norm: norm, Stats: stats}.Estimate(in.Scores, rows)
		if err != nil {
			t.Fatal(err)
		}
		want.row(t, name, got)
	}
	want.done(t)
}

func testRLOO(t *testing.T, c vectors.Case) {
	var in struct {
		Scores []float64
		UID    []string
	}
	var want []float64
	c.Decode(t, &in, &want)
	got, err := advantage.RLOO{}.Estimate(in.Scores, in.UID)
	if err != nil {
		t.Fatal(err)
	}
	vectors.Equal(t, "advantage", got, want)
}

func testGiGPO(t *testing.T, c vectors.Case) {
	var in struct {
		Rows []struct {
			UID, Traj, Obs string
			EnvR           float64 `json:"env_r"`
			Valid          *float64
		}
		Gamma, Omega, Eps float64
		Mode              advantage.Mode
		Penalty           float64 `json:"invalid_penalty"`
		Similarity        float64 `json:"similarity_threshold"`
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	names := advNamed(
		len(in.Rows), func(i int) string { return in.Rows[i].UID }, func(i int) string { return in.Rows[i].Traj },
	)
	turns := make([]advantage.GiGPORow, len(in.Rows))
	for i, r := range in.Rows {
		turns[i] = advantage.GiGPORow{
			Row: names[i], Reward: r.EnvR, Observation: r.Obs, Invalid: r.Valid != nil && *r.Valid == 0,
		}
	}
	got, err := advantage.GiGPO{
		Gamma: in.Gamma, Omega: in.Omega, Mode: in.Mode, Epsilon: in.Eps, InvalidPenalty: in.Penalty,
		Anchors: advantage.Anchors{Similarity: in.Similarity},
	}.Estimate(turns)
	if err != nil {
		t.Fatal(err)
	}
	want.row(t, "step_return", got.StepReturn)
	want.row(t, "step_reward_pen", got.StepScore)
	want.row(t, "episode_score_pen", got.EpisodeScore)
	want.row(t, "group_id", advByAppearance(got.Anchor))
	want.row(t, "adv_episode", got.Episode)
	want.row(t, "adv_step", got.Step)
	want.row(t, "adv", got.Advantage)
	for name := range want {
		var a, b int
		if k, err := fmt.Sscanf(name, "ratio_row%d_row%d", &a, &b); err != nil || k != 2 {
			continue
		}
		ratio := advantage.RatcliffObershelp{}.Ratio(in.Rows[a].Obs, in.Rows[b].Obs)
		var expected float64
		want.take(t, name, &expected)
		vectors.Equal(t, name, []float64{ratio}, []float64{expected})
	}
	want.done(t)
}

// advByAppearance renumbers ids in the order of their rows, as the vectors do.
func advByAppearance(ids []int) []float64 {
	number, out := map[int]int{}, make([]float64, len(ids))
	for i, id := range ids {
		if _, ok := number[id]; !ok {
			number[id] = len(number)
		}
		out[i] = float64(number[id])
	}
	return out
}

func testEMPG(t *testing.T, c vectors.Case) {
	var in struct {
		Rows []struct {
			UID, Traj    string
			Turn         int
			Entropy, Adv float64
		}
		K, Zeta float64
		KPrime  float64 `json:"k_prime"`
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	rows := make([]advantage.EMPGRow, len(in.Rows))
	for i, r := range in.Rows {
		rows[i] = advantage.EMPGRow{
			Row: advantage.Row{Group: r.UID, Trajectory: r.Traj, Turn: r.Turn}, Entropy: r.Entropy, Advantage: r.Adv,
		}
	}
	result := func(mean advantage.EntropyMean) advantage.EMPGResult {
		got, err := advantage.EMPG{K: in.K, KPrime: in.KPrime, Zeta: in.Zeta, Mean: mean}.Estimate(rows)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := result(advantage.MeanRows)
	want.row(t, "H_norm", got.Normalised)
	want.row(t, "g", got.Gain)
	want.row(t, "f", got.Future)
	want.row(t, "adv", got.Advantage)
	want.row(t, "g_mean_of_traj_means", result(advantage.MeanTrajectories).Gain)
	want.row(t, "g_paper_literal_sum", result(advantage.SumTrajectories).Gain)
	want.done(t)
}

func testSPEAR(t *testing.T, c vectors.Case) {
	var in struct {
		FIFO   []float64 `json:"baseline_fifo"`
		Buffer []struct {
			Reward float64
			Adv    float64 `json:"adv_at_collection"`
		}
		WeightDecay float64 `json:"weight_decay"`
	}
	want := advOutputs{}
	c.Decode(t, &in, &want)
	var queue advantage.BaselineQueue
	for i, mean := range in.FIFO {
		pushed, err := queue.Push(advantage.Baseline{Step: i, Mean: mean})
		if err != nil {
			t.Fatal(err)
		}
		queue = pushed
	}
	collected := make([]advantage.Collected, len(in.Buffer))
	for i, r := range in.Buffer {
		collected[i] = advantage.Collected{Reward: r.Reward, Advantage: r.Adv}
	}
	for name, keepZero := range map[string]bool{"keep_strict": false, "keep_ge": true} {
		got, err := advantage.Recalibration{
			WeightDecay: max(in.WeightDecay, 0), KeepZero: keepZero,
		}.Estimate(collected, queue)
		if err != nil {
			t.Fatal(err)
		}
		keep, recalibrated := make([]float64, len(got)), make([]float64, len(got))
		for i, r := range got {
			recalibrated[i] = r.Advantage
			if r.Keep {
				keep[i] = 1
			}
		}
		want.row(t, name, keep)
		want.row(t, "recalibrated", recalibrated)
	}
	p50, _ := queue.P50()
	var expected float64
	if want.take(t, "p50", &expected) {
		vectors.Equal(t, "p50", []float64{p50}, []float64{expected})
	}
	want.done(t)
}

func testRatcliffObershelp(t *testing.T, c vectors.Case) {
	var in struct{ A, B string }
	want := advOutputs{}
	c.Decode(t, &in, &want)
	for name, off := range map[string]bool{"autojunk_on": false, "autojunk_off": true} {
		var expected float64
		if want.take(t, name, &expected) {
			got := advantage.RatcliffObershelp{NoAutojunk: off}.Ratio(in.A, in.B)
			vectors.Equal(t, name, []float64{got}, []float64{expected})
		}
	}
	want.done(t)
}
