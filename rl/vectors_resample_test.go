package rl

import (
	"testing"

	"github.com/ropewalk/ropewalk/rl/internal/vectors"
	"github.com/ropewalk/ropewalk/rl/resample"
)

var resampleKinds = vectors.Kinds{
	"filter/roc_penalties": testPenalties,
	"filter/roc_counts":    testCounts,
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
