package rl

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

var rewardKinds = vectors.Kinds{
	"reward/last_boxed":             testLastBoxed,
	"reward/spear_composite":        testSPEARComposite,
	"reward/prs_short":              testShortPRS,
	"reward/prs_long":               testLongPRS,
	"reward/prs_general":            testGeneralPRS,
	"reward/short_bleu":             testShortBLEU,
	"reward/qa_em_f1":               testQA,
	"reward/aepo_deep_research":     testDeepResearch,
	"reward/arlarena_strict_format": testStrictFormat,
	"reward/dapo_soft_overlong":     testSoftOverlong,
}

func testLastBoxed(t *testing.T, c vectors.Case) {
	var in []string
	var want []*string
	c.Decode(t, &in, &want)
	sameLength(t, len(in), len(want))
	for i, text := range in {
		got, ok := reward.LastBoxed(text)
		if ok != (want[i] != nil) || ok && got != *want[i] {
			t.Errorf("last box of %q: %q, %v", text, got, ok)
		}
	}
}

func testSPEARComposite(t *testing.T, c vectors.Case) {
	var in []struct {
		Outcome   float64 `json:"outcome"`
		ToolTurns int     `json:"tool_turns"`
		FormatOK  flag    `json:"format_ok"`
		T         int     `json:"t"`
		Decay     int     `json:"T_decay"`
	}
	var want []struct{ Mu, Tool, Total float64 }
	c.Decode(t, &in, &want)
	sameLength(t, len(in), len(want))
	for i, x := range in {
		f := reward.Facts{Success: x.Outcome > 0, Turns: max(1, x.ToolTurns), ToolTurns: x.ToolTurns}
		if !x.FormatOK {
			f.MalformedTurns = 1
		}
		p, err := reward.SPEAR{ToolStep: 0.1, FormatBonus: 0.1}.Reward(f, schedule.Mu{Horizon: x.Decay}.At(x.T))
		if err != nil {
			t.Fatal(err)
		}
		vectors.Equal(t, "outcome, mu, tool, total of "+strconv.Itoa(i),
			[]float64{p.Outcome, p.Mu, p.Tool, p.Total}, []float64{x.Outcome, want[i].Mu, want[i].Tool, want[i].Total})
	}
}

func testShortPRS(t *testing.T, c vectors.Case) {
	var in []struct{ Process, Format, Answer float64 }
	var want []float64
	c.Decode(t, &in, &want)
	got := make([]float64, len(in))
	for i, x := range in {
		got[i] = reward.ShortPRS(x.Process, x.Format, x.Answer)
	}
	vectors.Equal(t, "short", got, want)
}

func testLongPRS(t *testing.T, c vectors.Case) {
	var in []struct{ Process, Format, Judge, Answer float64 }
	var want []float64
	c.Decode(t, &in, &want)
	got := make([]float64, len(in))
	for i, x := range in {
		got[i] = reward.LongPRS(x.Process, x.Format, x.Judge, x.Answer)
	}
	vectors.Equal(t, "long", got, want)
}

func testGeneralPRS(t *testing.T, c vectors.Case) {
	var in []struct{ R, Thresholds []float64 }
	var want []float64
	c.Decode(t, &in, &want)
	got := make([]float64, len(in))
	for i, x := range in {
		if len(x.R) > 0 && len(x.Thresholds) == len(x.R) {
			x.Thresholds = x.Thresholds[:len(x.R)-1] // the last stage gates nothing
		}
		var err error
		if got[i], err = reward.GeneralPRS(x.R, x.Thresholds); err != nil {
			t.Fatal(err)
		}
	}
	vectors.Equal(t, "general", got, want)
}

// testShortBLEU reads from an output's name what it asks for: short, standard_n4, short_smooth_eps0_1.
func testShortBLEU(t *testing.T, c vectors.Case) {
	var in []struct {
		Name       string     `json:"name"`
		Candidate  []string   `json:"candidate"`
		References [][]string `json:"references"`
	}
	var want map[string]map[string]float64
	c.Decode(t, &in, &want)
	sameLength(t, len(in), len(want))
	for _, x := range in {
		for name, score := range want[x.Name] {
			var b reward.BLEU
			eps, smooth := strings.CutPrefix(name, "short_smooth_eps")
			switch {
			case name == "short":
			case name == "standard_n4":
				b.Standard = true
			case smooth:
				var err error
				if b.Smoothing, err = strconv.ParseFloat(strings.ReplaceAll(eps, "_", "."), 64); err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("%s: no test knows the score %s", x.Name, name)
			}
			vectors.Equal(t, x.Name+" "+name, []float64{b.Score(x.Candidate, x.References)}, []float64{score})
		}
		if len(want[x.Name]) == 0 {
			t.Errorf("%s has no scores", x.Name)
		}
	}
}

func testQA(t *testing.T, c vectors.Case) {
	var in []struct {
		Pred string
		Gold golds
	}
	var want []struct {
		NormPred string  `json:"norm_pred"`
		NormGold golds   `json:"norm_gold"`
		EM       flag    `json:"em"`
		SubEM    flag    `json:"subem"`
		F1       float64 `json:"f1"`
	}
	c.Decode(t, &in, &want)
	sameLength(t, len(in), len(want))
	for i, x := range in {
		w := want[i]
		if got := reward.NormalizeQA(x.Pred); got != w.NormPred {
			t.Errorf("normalised prediction %d: %q, want %q", i, got, w.NormPred)
		}
		sameLength(t, len(x.Gold), len(w.NormGold))
		for k, gold := range x.Gold {
			if got := reward.NormalizeQA(gold); got != w.NormGold[k] {
				t.Errorf("normalised gold %d: %q, want %q", i, got, w.NormGold[k])
			}
		}
		if got := reward.ExactMatch(x.Pred, x.Gold); got != bool(w.EM) {
			t.Errorf("EM %d: %v", i, got)
		}
		if got := reward.SubMatch(x.Pred, x.Gold); got != bool(w.SubEM) {
			t.Errorf("sub-EM %d: %v", i, got)
		}
		vectors.Equal(t, "f1 of "+strconv.Itoa(i), []float64{reward.F1(x.Pred, x.Gold)}, []float64{w.F1})
	}
}

func testDeepResearch(t *testing.T, c vectors.Case) {
	var in []struct {
		FormatOK  flag    `json:"format_ok"`
		F1        float64 `json:"f1"`
		HasSearch flag    `json:"has_search"`
		HasPython flag    `json:"has_python"`
	}
	var want []float64
	c.Decode(t, &in, &want)
	got := make([]float64, len(in))
	for i, x := range in {
		form := reward.Research{WellFormed: bool(x.FormatOK)}
		if x.HasSearch {
			form.Searches = 1
		}
		if x.HasPython {
			form.Python = 1
		}
		got[i] = form.Reward(x.F1)
	}
	vectors.Equal(t, "reward", got, want)
}

func testStrictFormat(t *testing.T, c vectors.Case) {
	var in []struct{ Name, Text string }
	var want map[string]flag
	c.Decode(t, &in, &want)
	sameLength(t, len(in), len(want))
	for _, x := range in {
		w, ok := want[x.Name]
		if _, strict := reward.StrictForm(x.Text); !ok || strict != bool(w) {
			t.Errorf("%s: strict %v, want %v", x.Name, strict, w)
		}
	}
}

func testSoftOverlong(t *testing.T, c vectors.Case) {
	in := struct {
		MaxLen  int     `json:"max_len"`
		Buffer  int     `json:"buffer"`
		Factor  float64 `json:"factor"`
		Lengths []int   `json:"lengths"`
	}{Factor: 1}
	var want []float64
	c.Decode(t, &in, &want)
	got := make([]float64, len(in.Lengths))
	for i, length := range in.Lengths {
		got[i] = reward.SoftOverlong(length, in.MaxLen, in.Buffer, in.Factor)
	}
	vectors.Equal(t, "penalty", got, want)
}

func sameLength(t *testing.T, inputs, outputs int) {
	t.Helper()
	if inputs != outputs {
		t.Fatalf("%d inputs and %d outputs", inputs, outputs)
	}
}

// flag reads true, false, 1 and 0.
type flag bool

func (f *flag) UnmarshalJSON(raw []byte) error {
	switch string(raw) {
	case "true", "1", "1.0":
		*f = true
		return nil
	case "false", "0", "0.0":
		*f = false
		return nil
	}
	return json.Unmarshal(raw, (*bool)(f))
}

// golds reads one text or a list of them.
type golds []string

func (g *golds) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*g = golds{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(g))
}
