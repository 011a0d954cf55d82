package schema

import "math"

// This file summarises the rows of one update for the line that describes a step. Rows from the replay buffer are left
// out: their advantages are recalibrated, and the critic learns from the batch only.

// Advantages describes the numbers by which an update multiplied its ratios: the batch's advantages, including weights,
// over the loss tokens of its rows, each token once.
type Advantages struct {
	Mean     float64 `json:"mean"`
	Std      float64 `json:"std"` // population
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Zero     float64 `json:"zero"`     // share of the tokens whose advantage is 0
	Positive float64 `json:"positive"` // … is > 0
}

// AdvantagesOf pools the advantages of the optimiser steps, weighted by their tokens; nil if no step recorded any. The
// standard deviation is that of all tokens together: its square is E[std² + mean²] − mean².
func AdvantagesOf(rows []UpdateRow) *Advantages {
	out := Advantages{Min: math.Inf(1), Max: math.Inf(-1)}
	tokens, squares := 0.0, 0.0
	for _, r := range rows {
		if r.AdvantageMean == nil || r.AdvantageStd == nil || r.AdvantageMin == nil || r.AdvantageMax == nil ||
			r.fromReplay() {
			continue
		}
		n, mean, std := float64(r.Tokens), *r.AdvantageMean, *r.AdvantageStd
		tokens += n
		out.Mean += n * mean
		squares += n * (std*std + mean*mean)
		out.Min, out.Max = math.Min(out.Min, *r.AdvantageMin), math.Max(out.Max, *r.AdvantageMax)
		out.Zero += n * orZero(r.AdvantageZero)
		out.Positive += n * orZero(r.AdvantagePositive)
	}
	if tokens == 0 {
		return nil
	}
	out.Mean, out.Zero, out.Positive = out.Mean/tokens, out.Zero/tokens, out.Positive/tokens
	out.Std = math.Sqrt(math.Max(0, squares/tokens-out.Mean*out.Mean))
	return &out
}

// CriticFigures describes the critic's part of an update. Each optimiser step is measured before it changes the critic.
type CriticFigures struct {
	Loss              float64  `json:"loss"`                         // mean over optimiser steps
	ExplainedVariance *float64 `json:"explained_variance,omitempty"` // mean over those whose returns vary; nil if there are none
	ClipFraction      float64  `json:"clip_fraction"`                // over tokens, like the means below
	Value             float64  `json:"value"`
	Return            float64  `json:"return"`
}

// CriticFiguresOf pools the optimiser steps of the critic; nil if there are none.
func CriticFiguresOf(rows []UpdateRow) *CriticFigures {
	var out CriticFigures
	steps, tokens, known, explained := 0.0, 0.0, 0.0, 0.0
	for _, r := range rows {
		if r.ValueLoss == nil || r.fromReplay() {
			continue
		}
		n := float64(r.Tokens)
		steps, tokens = steps+1, tokens+n
		out.Loss += *r.ValueLoss
		out.ClipFraction += n * orZero(r.ValueClipFraction)
		out.Value += n * orZero(r.ValueMean)
		out.Return += n * orZero(r.ReturnMean)
		if r.ExplainedVariance != nil {
			known, explained = known+1, explained+*r.ExplainedVariance
		}
	}
	if steps == 0 || tokens == 0 {
		return nil
	}
	out.Loss /= steps
	out.ClipFraction, out.Value, out.Return = out.ClipFraction/tokens, out.Value/tokens, out.Return/tokens
	if known > 0 {
		out.ExplainedVariance = new(explained / known)
	}
	return &out
}

func (r UpdateRow) fromReplay() bool { return r.Source != nil && *r.Source == SourceReplay }

// orZero returns *x, or 0 if x is nil.
func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
