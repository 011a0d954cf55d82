package reward

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Progressive reward shaping (PRS): a later stage pays only where the earlier ones are reached.
//
//	R_process = 1   every tool call parses and runs, and the final answer can be extracted
//	            0   the same, but no final answer
//	           −1   else
//	R_format  = 0.1 iff every step's content is inside its tags, else 0
//	short     = P + F           if P < 1
//	            P + F + R_a     else
//	long      = P + F           if P < 1
//	            P + F + J       if P ≥ 1 and J < 1
//	            P + F + J + R_a if P ≥ 1 and J ≥ 1
//	general   = R_1 + Σ_{k≥2} 1[R_i ≥ ε_i for all i < k]·σ(R_k)
//
// where R_a is the short-form BLEU of the answer (bleu.go), J the judge's verdict (judge.go) and σ the
// logistic function. The gates of the general form read the stages before σ, so that reaching a stage always
// adds something.
//
// Source: PRS + VSPO, equations 8, 9, 13, 14 and 15 (the general form). Departures: the cases of equation 14
// overlap, and the most specific one applies. In a trajectory without tool calls all of them count as correct, so
// an answer alone gives 1. Calls must run as well as parse, as the text says; in the equation they need only parse.

var prsShort = Declaration{
	Choice: choice.Choice{
		Name: "prs_short", Doc: "process + format, plus short BLEU where the process is whole", Source: "PRS eq 13",
		Settings: prsShortReward{},
	},
	ReadsTurns: true,
}

var prsLong = Declaration{
	Choice: choice.Choice{
		Name: "prs_long", Doc: "process + format, then the judge's verdict, then BLEU", Source: "PRS eq 14",
		Settings: prsLongReward{}, Reads: choice.Reading("judge"),
	},
	ReadsTurns: true,
}

var prsGeneral = Declaration{
	Choice: choice.Choice{
		Name: "prs_general", Doc: "process, judge and answer as gated stages behind a logistic",
		Source:   "PRS eq 15",
		Settings: prsGeneralReward{ProcessGate: 1, JudgeGate: 1}, Reads: choice.Reading("judge"),
	},
	ReadsTurns: true,
}

// prsShortReward holds the parameters of the short form in a recipe.
type prsShortReward struct {
	SmoothedBLEU bool `json:"smoothed_bleu" doc:"an n-gram order without a match counts as 0.1 matches instead of giving 0"`
}

// prsLongReward holds the parameters of the long form in a recipe.
type prsLongReward struct {
	SmoothedBLEU bool `json:"smoothed_bleu"`
}

// prsGeneralReward holds the parameters of the general form in a recipe.
type prsGeneralReward struct {
	SmoothedBLEU bool    `json:"smoothed_bleu"`
	ProcessGate  float64 `json:"process_gate" min:"-1000" max:"1000" doc:"least process reward that opens the judge's stage"`
	JudgeGate    float64 `json:"judge_gate" min:"-1000" max:"1000" doc:"least judge's verdict that opens the stage of the answer's score"`
}

// Score is the short form.
func (p prsShortReward) Score(t Trajectory, o Outcome) (float64, error) {
	r, err := t.prs(o, p.SmoothedBLEU)
	return ShortPRS(r.process, r.format, r.answer), err
}

// Score is the long form. Without a judge, exact match replaces it.
func (p prsLongReward) Score(t Trajectory, o Outcome) (float64, error) {
	r, err := t.prs(o, p.SmoothedBLEU)
	return LongPRS(r.process, r.format, r.judge, r.answer), err
}

// Score is the general form over process, judge and answer; the format of the text is none of its stages.
func (p prsGeneralReward) Score(t Trajectory, o Outcome) (float64, error) {
	r, err := t.prs(o, p.SmoothedBLEU)
	if err != nil {
		return 0, err
	}
	return GeneralPRS([]float64{r.process, r.judge, r.answer}, []float64{p.ProcessGate, p.JudgeGate})
}

// prsStages are what the stages of a trajectory pay, whether or not it reaches them.
type prsStages struct{ process, format, judge, answer float64 }

// prs works the stages out. The answer is compared with the references by BLEU over TokenizeQA.
func (t Trajectory) prs(o Outcome, smoothed bool) (prsStages, error) {
	f, judgement := t.facts(o), t.judgement()
	if err := f.Validate(); err != nil {
		return prsStages{}, err
	}
	if err := judgement.Validate(); err != nil {
		return prsStages{}, err
	}
	out := prsStages{process: f.process(), format: formatReward * indicator(f.wellFormed()), judge: judgement.Score()}
	if f.Answered {
		var b BLEU
		if smoothed {
			b.Smoothing = 0.1
		}
		out.answer = b.ScoreText(t.Answer, t.golds())
	}
	return out, nil
}

// judgement is the judge's verdict, or that of exact match, which replaces a judge.
func (t Trajectory) judgement() Judgement {
	switch {
	case t.Judgement != "":
		return t.Judgement
	case t.Answered && ExactMatch(t.Answer, t.golds()):
		return Match
	}
	return Mismatch
}

// ByJudge implements Judged.
func (prsLongReward) ByJudge() bool { return false }

// Ask implements Judged: the judge's stage opens with the whole process.
func (prsLongReward) Ask(t Trajectory, o Outcome) (Query, bool) {
	return t.grounded(t.facts(o).process() >= 1)
}

// ByJudge implements Judged.
func (prsGeneralReward) ByJudge() bool { return false }

// Ask implements Judged: the judge's stage opens at its gate.
func (p prsGeneralReward) Ask(t Trajectory, o Outcome) (Query, bool) {
	return t.grounded(t.facts(o).process() >= p.ProcessGate)
}

// grounded asks whether the answer is grounded, if the judge's stage is open. Without an answer it is not.
func (t Trajectory) grounded(open bool) (Query, bool) {
	if !open || !t.Answered {
		return Query{}, false
	}
	return Query{Criterion: Grounded, Response: t.Answer, References: t.golds()}, true
}

// ShortPRS combines the stages of the short form (equation 13).
func ShortPRS(process, format, answer float64) float64 {
	if process < 1 {
		return process + format
	}
	return process + format + answer
}

// LongPRS combines the stages of the long form (equation 14).
func LongPRS(process, format, judge, answer float64) float64 {
	switch {
	case process < 1:
		return process + format
	case judge < 1:
		return process + format + judge
	}
	return process + format + judge + answer
}

// GeneralPRS combines stages R_1 … R_K by thresholds ε_1 … ε_{K−1}. An empty list, a wrong number of thresholds, a NaN
// and an infinite stage are errors that name the index. An infinite threshold is a gate that is always open or always
// shut.
func GeneralPRS(stages, thresholds []float64) (float64, error) {
	if len(stages) == 0 || len(thresholds) != len(stages)-1 {
		return 0, fmt.Errorf("general PRS: %d stages need one threshold fewer, got %d", len(stages), len(thresholds))
	}
	for i, r := range stages {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return 0, fmt.Errorf("general PRS: stage %d is %g", i, r)
		}
	}
	for i, e := range thresholds {
		if math.IsNaN(e) {
			return 0, fmt.Errorf("general PRS: threshold %d is %g", i, e)
		}
	}
	total := stages[0]
	for k := 1; k < len(stages) && stages[k-1] >= thresholds[k-1]; k++ {
		total += logistic(stages[k])
	}
	return total, nil
}

// logistic is σ(x), without overflow on either side.
func logistic(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}
