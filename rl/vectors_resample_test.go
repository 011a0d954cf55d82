package rl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/resample"
)

var resampleKinds = vectors.Kinds{
	"filter/roc_penalties":      testPenalties,
	"filter/roc_counts":         testCounts,
	"filter/roc_select":         testRoCSelect,
	"filter/groups":             testGroupFilters,
	"filter/dapo_accumulate":    testDynamicSampling,
	"filter/spear_buffer_alg1":  testReplayBuffer,
	"filter/spear_full_release": testReplayFull,
	"filter/spear_pow2_subset":  testPowerOfTwo,
	"filter/overlong_void":      testOverlongVoid,
}

func testPenalties(t *testing.T, c vectors.Case) {
	var in []struct{ Name, Response string }
	var want map[string]struct {
		Err        float64 `json:"p_err"`
		FormatCode float64 `json:"p_format_code"`
		FormatTrue float64 `json:"p_format_true_turns"`
		TotalCode  float64 `json:"p_total_code"`
		TotalTrue  float64 `json:"p_total_true_turns"`
	}
	c.Decode(t, &in, &want)
	for _, x := range in {
		w := want[x.Name]
		code, full := resample.TextPenalties(x.Response, false), resample.TextPenalties(x.Response, true)
		vectors.Equal(t, x.Name,
			[]float64{code.Error, full.Error, code.Format, full.Format, code.Total(), full.Total()},
			[]float64{w.Err, w.Err, w.FormatCode, w.FormatTrue, w.TotalCode, w.TotalTrue})
	}
}

func testCounts(t *testing.T, c vectors.Case) {
	var in struct {
		G, Total int
		MinPos   int `json:"min_pos"`
		MinNeg   int `json:"min_neg"`
	}
	var want []struct {
		Pos, Neg      int
		KPos          int `json:"k_pos"`
		KNeg          int `json:"k_neg"`
		PaperPositive int `json:"paper_k_pos"`
		PaperNegative int `json:"paper_k_neg"`
	}
	c.Decode(t, &in, &want)
	release := resample.RoC{Keep: in.G, Counts: resample.CountsRelease, MinPositive: in.MinPos, MinNegative: in.MinNeg}
	paper := resample.RoC{Keep: in.G, Counts: resample.CountsPaper}
	for _, w := range want {
		if p, n := release.Quota(w.Pos, w.Neg); p != w.KPos || n != w.KNeg {
			t.Errorf("release of %d+%d: %d+%d, want %d+%d", w.Pos, w.Neg, p, n, w.KPos, w.KNeg)
		}
		if p, n := paper.Quota(w.Pos, w.Neg); p != w.PaperPositive || n != w.PaperNegative {
			t.Errorf("paper of %d+%d: %d+%d, want %d+%d", w.Pos, w.Neg, p, n, w.PaperPositive, w.PaperNegative)
		}
	}
}

func testRoCSelect(t *testing.T, c vectors.Case) {
	var in struct {
		Positives []struct {
			Index   int
			Penalty float64 `json:"p_total"`
		}
		Keep int `json:"k_pos"`
	}
	var want struct {
		Lowest  []int     `json:"code_lowest_penalty_first"`
		Weights []float64 `json:"sampling_weight_1_over_p_plus_eps"`
		Eps     float64
	}
	c.Decode(t, &in, &want)
	var penalties, weights []float64
	for _, p := range in.Positives {
		penalties, weights = append(penalties, p.Penalty), append(weights, resample.PenaltyWeight(p.Penalty))
	}
	var lowest []int
	for _, i := range resample.LowestPenalty(penalties, in.Keep) {
		lowest = append(lowest, in.Positives[i].Index)
	}
	if !slices.Equal(lowest, want.Lowest) {
		t.Errorf("lowest penalties %v, want %v", lowest, want.Lowest)
	}
	vectors.Equal(t, "weights", weights, want.Weights)
	vectors.Equal(t, "eps", []float64{resample.PenaltyEpsilon}, []float64{want.Eps})
}

func testGroupFilters(t *testing.T, c vectors.Case) {
	var in struct {
		Rewards [][]float64
		Keep    float64 `json:"keep_ratio"`
		Reverse bool    `json:"std_rev"`
	}
	var want struct {
		Dapo       []int     `json:"dapo_keep"`
		Population []float64 `json:"std_pop"`
		Sample     []float64 `json:"std_sample"`
		Count      int       `json:"low_variance_keep_count"`
		Keep       []int     `json:"low_variance_keep"`
	}
	c.Decode(t, &in, &want)
	var population, sample []float64
	var dapo []bool
	var rows []resample.Row
	for g, rewards := range in.Rewards {
		population = append(population, resample.PopulationDeviation.Of(rewards))
		sample = append(sample, resample.SampleDeviation.Of(rewards))
		dapo = append(dapo, resample.Informative(rewards))
		for k, r := range rewards {
			rows = append(
				rows, resample.Row{GroupID: fmt.Sprintf("%09d", g), TrajectoryID: fmt.Sprintf("%09d", k), Reward: r},
			)
		}
	}
	vectors.Equal(t, "std_pop", population, want.Population)
	vectors.Equal(t, "std_sample", sample, want.Sample)
	equalFlags(t, "dapo_keep", dapo, want.Dapo)
	for _, deviation := range []resample.Deviation{resample.SampleDeviation, resample.PopulationDeviation} {
		filter := resample.LowVariance{Keep: in.Keep, Deviation: deviation, Reverse: in.Reverse}
		selection, err := resample.Chain{Links: []resample.Link{filter}}.Select(rows)
		if err != nil {
			t.Fatal(err)
		}
		kept := []int{}
		for g, at := 0, 0; g < len(in.Rewards); at, g = at+len(in.Rewards[g]), g+1 {
			if len(in.Rewards[g]) > 0 && selection.Rows[at].Kept {
				kept = append(kept, g)
			}
		}
		if slices.Sort(want.Keep); !slices.Equal(kept, want.Keep) || selection.KeptGroups != want.Count {
			t.Errorf(
				"%s deviation keeps %d groups %v, want %d %v", deviation, selection.KeptGroups, kept, want.Count,
				want.Keep,
			)
		}
	}
}

func testDynamicSampling(t *testing.T, c vectors.Case) {
	var in struct {
		Target      int `json:"target_groups"`
		Batches     int `json:"max_batches"`
		Informative [][]int
		Names       [][]string
	}
	var want [][]string
	c.Decode(t, &in, &want)
	d := resample.DynamicSampling{Target: in.Target, Tries: in.Batches}
	var names []string // ids are places in the order of the case, so that they sort as it lists them
	var a resample.Accumulation
	for i, batch := range in.Names {
		if a.Done {
			break
		}
		var outcomes []resample.Outcome
		for k, name := range batch {
			outcomes = append(
				outcomes,
				resample.Outcome{GroupID: fmt.Sprintf("%09d", len(names)), Informative: in.Informative[i][k] == 1},
			)
			names = append(names, name)
		}
		var err error
		if a, _, err = d.Advance(a, 0, outcomes); err != nil {
			t.Fatal(err)
		}
		kept := []string{}
		for _, id := range a.Kept {
			var at int
			if _, err := fmt.Sscanf(id, "%d", &at); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, names[at])
		}
		if i >= len(want) || !slices.Equal(kept, want[i]) {
			t.Errorf("after batch %d: %v, want %v", i, kept, want)
		}
	}
	if !a.Done && a.Tries < len(in.Names) || a.Tries > len(want) {
		t.Errorf("done %v after %d batches of %d", a.Done, a.Tries, len(want))
	}
	for _, w := range want[a.Tries:] { // a case may go on with what it has
		if !slices.Equal(w, want[a.Tries-1]) {
			t.Errorf("%v after the last batch", w)
		}
	}
}

// replayRows makes the rows of one step; advantages are rewards less the group mean, of which the
// buffer reads the sign alone.
func replayRows(t *testing.T, groups [][]float64) []resample.ReplayRow {
	t.Helper()
	var rows []resample.ReplayRow
	var scores []float64
	var names []string
	for g, rewards := range groups {
		for k, r := range rewards {
			rows = append(
				rows,
				resample.ReplayRow{GroupID: fmt.Sprintf("%09d", g), TrajectoryID: fmt.Sprintf("%09d", k), Reward: r},
			)
			scores, names = append(scores, r), append(names, rows[len(rows)-1].GroupID)
		}
	}
	advantages, err := advantage.Group{SingleGroup: advantage.SingleZero}.Estimate(scores, names)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range advantages {
		rows[i].Advantage = a
	}
	return rows
}

func testReplayBuffer(t *testing.T, c vectors.Case) {
	var in struct {
		Capacity  int `json:"N_D"`
		Baselines int `json:"N_DR"`
		Steps     [][][]float64
	}
	var want []struct {
		Step, Buffer int
		Mode         string
		Baselines    []float64
		P50          *float64
		Sil          []struct {
			Step          int
			Reward, Recal float64
		}
	}
	c.Decode(t, &in, &want)
	replay, buffer := resample.Replay{Capacity: in.Capacity, Baselines: in.Baselines}, resample.Buffer{}
	if len(want) != len(in.Steps) {
		t.Fatalf("%d outputs of %d steps", len(want), len(in.Steps))
	}
	for i, w := range want {
		var out resample.Replayed
		var err error
		if buffer, out, err = replay.Advance(buffer, i, replayRows(t, in.Steps[i]), nil); err != nil {
			t.Fatal(err)
		}
		mode := map[bool]string{false: "on_policy", true: "on_policy+sil"}[out.Consumed]
		if w.Step != i || mode != w.Mode || len(buffer.Entries) != w.Buffer || (w.P50 != nil) != out.Consumed {
			t.Errorf(
				"step %d: %s, buffer of %d; want step %d, %s, %d", i, mode, len(buffer.Entries), w.Step, w.Mode,
				w.Buffer,
			)
		}
		if w.P50 != nil {
			vectors.Equal(t, "p50", []float64{out.P50}, []float64{*w.P50})
		}
		baselines := []float64{}
		for _, b := range buffer.Baselines {
			baselines = append(baselines, b.Mean)
		}
		vectors.Equal(t, "baselines", baselines, w.Baselines)
		var got, sil [][]float64
		for _, v := range out.Verdicts {
			if v.Fate == resample.Imitated {
				got = append(got, []float64{float64(v.Entry.Step), v.Entry.Reward, v.Recalibrated})
			}
		}
		for _, s := range w.Sil {
			sil = append(sil, []float64{float64(s.Step), s.Reward, s.Recal})
		}
		vectors.Equal(t, "sil", got, sil)
	}
}

func testReplayFull(t *testing.T, c vectors.Case) {
	var in []struct {
		Size      int `json:"buffer_size"`
		Baselines []float64
		Rewards   []float64 `json:"buffer_rewards"`
	}
	var want []struct {
		Above int `json:"above_p50"`
		Full  int
	}
	c.Decode(t, &in, &want)
	for i, x := range in {
		var queue advantage.BaselineQueue
		for _, mean := range x.Baselines {
			queue = append(queue, advantage.Baseline{Mean: mean})
		}
		above, full := resample.Replay{Capacity: x.Size, Full: resample.FullAboveMedian}.IsFull(queue, x.Rewards)
		if above != want[i].Above || full != (want[i].Full == 1) {
			t.Errorf("%+v: %d above, full %v; want %+v", x, above, full, want[i])
		}
	}
}

// testPowerOfTwo draws as many rows as the case keeps through the buffer.
func testPowerOfTwo(t *testing.T, c vectors.Case) {
	var in struct {
		Kept []int
		Cap  int
	}
	var want []int
	c.Decode(t, &in, &want)
	for i, kept := range in.Kept {
		if got := resample.PowerOfTwo(kept, in.Cap); got != want[i] {
			t.Errorf("%d rows, cap %d: %d, want %d", kept, in.Cap, got, want[i])
		}
		if kept == 0 {
			continue
		}
		buffer := resample.Buffer{}
		for k := range kept {
			buffer.Entries = append(
				buffer.Entries, resample.Entry{TrajectoryID: fmt.Sprint(k), Reward: 1, Advantage: 1},
			)
		}
		replay := resample.Replay{Capacity: in.Cap, Baselines: 1, RowCap: true, PowerOfTwo: true}
		if kept < in.Cap {
			replay.Capacity = kept // a smaller buffer is full; its cap takes nothing away
		}
		_, out, err := replay.Advance(buffer, 1, nil, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if !out.Consumed || out.Imitated != want[i] {
			t.Errorf(
				"%d entries, cap %d: consumed %v, imitated %d, want %d", kept, in.Cap, out.Consumed, out.Imitated,
				want[i],
			)
		}
	}
}

func testOverlongVoid(t *testing.T, c vectors.Case) {
	var in struct {
		Limit   int `json:"max_response"`
		Lengths []int
		Void    []int
	}
	var want []int
	c.Decode(t, &in, &want)
	masks := resample.Masks(choice.Params{"overlong": true, "void_turns": true})
	var got []bool
	for i, n := range in.Lengths {
		response := resample.Response{Length: n, Limit: in.Limit, VoidTurns: in.Void[i]}
		masked := slices.ContainsFunc(masks, func(m resample.Mask) bool { return m.Masker.Mask(response) })
		got = append(got, !masked)
	}
	equalFlags(t, "mask", got, want)
}

// equalFlags compares with flags that are written as 0 and 1.
func equalFlags(t *testing.T, name string, got []bool, want []int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d flags, want %d", name, len(got), len(want))
	}
	for i := range want {
		if got[i] != (want[i] == 1) {
			t.Errorf("%s[%d] = %v, want %d", name, i, got[i], want[i])
		}
	}
}
