package reward

import (
	"fmt"
	"math"
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
// with R_a the short-form BLEU of the answer (bleu.go), J the judge's verdict (judge.go) and σ the
// logistic function; the gates of the general form read the stages before σ, so that reaching a
// stage always adds something.
//
// Source: PRS + VSPO, equations 8, 9, 13, 14 and the general form. Departures: the cases of
// equation 14 overlap, the most specific one is meant; a trajectory without any tool call has all
// of them right, so that an answer alone gives 1; calls must run as well as parse, which is the
// text's reading (ParsedOnly gives the equation's).

// PRSForm says which stages there are.
type PRSForm string

// The forms.
const (
	PRSShort PRSForm = "prs_short" // short-form question answering: the answer's BLEU
	PRSLong  PRSForm = "prs_long"  // long-form: the judge first, then BLEU
)

// PRS is progressive reward shaping as one choice of a method. The zero value is the short form.
type PRS struct {
	Form       PRSForm // "" means prs_short
	ParsedOnly bool    // calls need only parse: one that ran into an error does not cost the stage
	BLEU       BLEU    // how answers are compared with the references
}

// PRSParts are the terms of one reward. A term that the stages did not reach is given all the
// same, but is not in Total.
type PRSParts struct {
	Process, Format, Judge, Answer, Total float64
}

// Validate names a field out of range.
func (p PRS) Validate() error {
	switch p.Form {
	case "", PRSShort, PRSLong:
		return p.BLEU.Validate()
	}
	return fmt.Errorf("PRS: form must be %s or %s, got %q", PRSShort, PRSLong, p.Form)
}

// Reward gives the reward of a trajectory. Facts read: Turns, MalformedTurns, Calls, ParsedCalls,
// ExecutedCalls, Answered; answer is the text that was extracted, compared with the references by
// BLEU over TokenizeQA; judgement is read by the long form alone.
func (p PRS) Reward(f Facts, answer string, references []string, judgement Judgement) (PRSParts, error) {
	if err := p.Validate(); err != nil {
		return PRSParts{}, err
	}
	if err := f.Validate(); err != nil {
		return PRSParts{}, err
	}
	out := PRSParts{Process: p.Process(f), Format: formatReward * indicator(f.wellFormed())}
	if f.Answered {
		out.Answer = p.BLEU.ScoreText(answer, references)
	}
	if p.Form != PRSLong {
		out.Total = ShortPRS(out.Process, out.Format, out.Answer)
		return out, nil
	}
	if err := judgement.Validate(); err != nil {
		return PRSParts{}, err
	}
	out.Judge = judgement.Score()
	out.Total = LongPRS(out.Process, out.Format, out.Judge, out.Answer)
	return out, nil
}

// Process is R_process, −1, 0 or 1.
func (p PRS) Process(f Facts) float64 {
	good := f.ExecutedCalls
	if p.ParsedOnly {
		good = f.ParsedCalls
	}
	switch {
	case good < f.Calls:
		return -1
	case !f.Answered:
		return 0
	}
	return 1
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

// GeneralPRS combines any stages R_1 … R_K by thresholds ε_1 … ε_{K−1}. It refuses an empty list,
// thresholds of another length and numbers that are NaN, by their index; an infinite stage is
// refused too, an infinite threshold is a gate that is always open or always shut.
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
