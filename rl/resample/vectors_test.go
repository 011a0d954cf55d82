package resample

import (
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/rl/internal/vectors"
)

func TestVectors(t *testing.T) {
	vectors.Run(t, map[string]func(*testing.T, vectors.Case){
		"filter/roc_penalties": testPenalties,
		"filter/roc_counts":    testCounts,
		"filter/roc_select":    testSelect,
	})
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
		code, full := TextPenalties(x.Response, false), TextPenalties(x.Response, true)
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
	release := RoC{Keep: in.G, Counts: CountsRelease, MinPositive: in.MinPos, MinNegative: in.MinNeg}
	paper := RoC{Keep: in.G, Counts: CountsPaper}
	for _, w := range want {
		if p, n := release.Quota(w.Pos, w.Neg); p != w.KPos || n != w.KNeg {
			t.Errorf("release of %d+%d: %d+%d, want %d+%d", w.Pos, w.Neg, p, n, w.KPos, w.KNeg)
		}
		if p, n := paper.Quota(w.Pos, w.Neg); p != w.PaperPositive || n != w.PaperNegative {
			t.Errorf("paper of %d+%d: %d+%d, want %d+%d", w.Pos, w.Neg, p, n, w.PaperPositive, w.PaperNegative)
		}
	}
}

func testSelect(t *testing.T, c vectors.Case) {
	var in struct {
		Positives []struct {
			Index   int
			Penalty float64 `json:"p_total"`
		}
		KPos int `json:"k_pos"`
	}
	var want struct {
		Lowest  []int     `json:"code_lowest_penalty_first"`
		Weights []float64 `json:"sampling_weight_1_over_p_plus_eps"`
		Eps     float64
	}
	c.Decode(t, &in, &want)
	var from []candidate
	var weights []float64
	for _, p := range in.Positives {
		from = append(from, candidate{index: p.Index, penalty: p.Penalty})
		weights = append(weights, penaltyWeight(p.Penalty))
	}
	if want.Eps != penaltyEpsilon {
		t.Errorf("the vector adds %g, the weight %g", want.Eps, penaltyEpsilon)
	}
	vectors.Equal(t, "weight", weights, want.Weights)
	if got := (RoC{Choice: ChooseLowest}).pickPositives(from, in.KPos, nil); !slices.Equal(got, want.Lowest) {
		t.Errorf("lowest: %v, want %v", got, want.Lowest)
	}
}
