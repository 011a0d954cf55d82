package experiment

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// By hand: the curve rises from 0 at 0 to 0.4 at 4 and stays there to 10.
func TestReductions(t *testing.T) {
	c := Curve{{0, 0}, {4, 0.4}, {9, 0.4}, {10, 0.5}}
	for reduce, want := range map[string]float64{"first": 0, "last": 0.5, "gain": 0.5, "mean": 1.3 / 4, "max": 0.5,
		"min": 0, "sum": 1.3, "tail": 0.45, "auc": (0.8 + 2 + 0.45) / 10} {
		v, ok := Outcome{Reduce: reduce}.value(c, math.Inf(1))
		require.True(t, ok)
		require.InDelta(t, want, v, 1e-12, reduce)
	}
	v, ok := Outcome{Reduce: "last"}.value(c, 2)
	require.True(t, ok)
	require.InDelta(t, 0.2, v, 1e-12, "on the line between two points")
	v, _ = Outcome{Reduce: "last"}.value(c, 4)
	require.InDelta(t, 0.4, v, 1e-12)
	v, _ = Outcome{Reduce: "tail", Below: new(0.46)}.value(c, 10)
	require.InDelta(t, 1, v, 0)
	_, ok = Outcome{Reduce: "last"}.value(Curve{{5, 1}}, 3)
	require.False(t, ok)
	v, _ = Outcome{Reduce: "auc"}.value(Curve{{5, 1}}, 10)
	require.InDelta(t, 1, v, 0, "a single point")
}

// Steps 1 and 2 spend 10 tokens each, and step 3 spends 5. An evaluation before training has spent none.
func TestCurvesOverAnAxis(t *testing.T) {
	spent := Curve{{1, 10}, {2, 20}, {3, 25}}
	require.Equal(t, Curve{{0, 0.1}, {20, 0.2}, {25, 0.3}}, Curve{{0, 0.1}, {2, 0.2}, {3, 0.3}}.over(spent))
}

// trial is a finished trial whose success on held-out problems is a line from 0 to last over its steps.
func trial(arm string, seed uint64, last, tokens float64) Observed {
	return Observed{Trial: Trial{Run: arm, Arm: arm, Seed: seed}, Result: &Result{Done: true, Steps: 10,
		Curves: map[string]Curve{"eval/success": {{0, 0}, {10, last}}},
		Spent:  map[string]Curve{axisTokens: {{5, tokens / 2}, {10, tokens}}}}}
}

func TestCompare(t *testing.T) {
	f := parsed(t, "name: x\nrecipe: quickstart\nseeds: 3\narms: {a: , b: }\noutcomes: [success, auc]\n")
	trials := []Observed{trial("a", 1, 0.2, 100), trial("b", 1, 0.4, 200), trial("a", 2, 0.3, 100),
		trial("b", 2, 0.6, 200), trial("a", 3, 0.1, 100)}
	got := f.compare(trials)
	require.Len(t, got, 2)
	require.Equal(t, []pair{{1, 0.4, 0.2}, {2, 0.6, 0.3}}, got[0].Pairs, "seed 3 has one trial")
	require.InDelta(t, 0.25, got[0].Mean, 1e-12)
	require.InDelta(t, 0.125, got[1].Mean, 1e-12)
	require.InDelta(t, 2**got[0].P, *got[0].Corrected, 1e-12)
	require.Equal(t, "not resolved", got[0].Verdict())
	require.Equal(t, "higher", Contrast{sample: sample{Mean: 1}, Corrected: new(0.04)}.Verdict())
	require.Equal(t, "lower", Contrast{sample: sample{Mean: -1}, Corrected: new(0.04)}.Verdict())

	// At 100 tokens, b is half-way.
	f.Budget.Axis = axisTokens
	require.Equal(t, []pair{{1, 0.2, 0.2}, {2, 0.3, 0.3}}, f.compare(trials)[0].Pairs)
	f.Budget.Amount = 50
	require.Equal(t, []pair{{1, 0.1, 0.1}, {2, 0.15, 0.15}}, f.compare(trials)[0].Pairs)

	sums := f.summarise(trials)
	require.Equal(t, 3, sums[0].N)
	means := f.Means(trials, f.Outcomes[0])
	require.Equal(t, []float64{0, 100}, means[0].X)
	require.InDelta(t, 0.2, means[0].Y[1], 1e-12)
	require.InDelta(t, 0.2+4.302653*0.1/math.Sqrt(3), means[0].High[1], 1e-6)
	require.Zero(t, means[0].Low[1], "a share is not negative")
}

func TestJudge(t *testing.T) {
	f := parsed(t, "name: x\nrecipe: quickstart\nseeds: 1\narms: {a: , b: , c: }\noutcomes: [success]\n"+
		"stop: {at: [5], halve: {by: success}, collapse: {of: success, below: 0.05}}\n")
	trials := []Observed{trial("a", 1, 0.2, 1), trial("b", 1, 0.6, 1), trial("c", 1, 0.4, 1), trial("d", 1, 0.02, 1),
		{Trial: Trial{Run: "new", Arm: "new"}}}
	got := f.Judge(5, trials)
	require.Equal(t, map[string]string{"a": "success of its arm was 0.1 after step 5, rank 3 of 3",
		"d": "success was 0.01 after step 5, below 0.05"}, got)

	better := trial("e", 1, 0.9, 1) // is known by its file alone
	ranked, err := f.Ranked(better.Result)
	require.NoError(t, err)
	rival, err := f.Rival(better.Trial, ranked)
	require.NoError(t, err)
	got = f.Judge(5, append(trials, rival))
	require.Equal(t, "success of its arm was 0.2 after step 5, rank 3 of 4", got["c"])
	none, err := f.Rival(better.Trial, json.RawMessage("null"))
	require.NoError(t, err)
	require.Len(t, f.Judge(5, append(trials, none)), 2)
}

func TestResultsAreFiles(t *testing.T) {
	f := parsed(t, "name: x\nrecipe: quickstart\nseeds: 1\n")
	all, err := f.Expand(nil, "")
	require.NoError(t, err)
	folder := t.TempDir()
	none, err := ReadResult(folder, all[0])
	require.NoError(t, err)
	require.Nil(t, none)
	want := trial("a", 1, 0.5, 10).Result
	want.Run, want.Digest = all[0].Run, all[0].Resolved.Digest
	require.NoError(t, want.Write(folder))
	got, err := ReadResult(folder, all[0])
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.True(t, got.Has(f.Outcomes))
	require.False(t, got.Has([]Outcome{named("entropy")}))
	want.Digest = "another"
	require.NoError(t, want.Write(folder))
	_, err = ReadResult(folder, all[0])
	require.ErrorContains(t, err, "holds the result of run "+all[0].Run+" and recipe another")
}

func TestSettingsThatDiffer(t *testing.T) {
	f := parsed(t, "name: x\nrecipe: quickstart\nseeds: 2\narms: {a: , b: {set: {steps: 7}}}\n")
	trials, err := f.Expand(nil, "")
	require.NoError(t, err)
	var observed []Observed
	for _, one := range trials {
		observed = append(observed, Observed{Trial: one})
	}
	table, err := f.Settings(observed)
	require.NoError(t, err)
	require.Equal(t, []string{"field", "a", "b"}, table.Columns)
	require.Equal(t, [][]string{{"steps", "85", "7"}}, table.Rows)
}
