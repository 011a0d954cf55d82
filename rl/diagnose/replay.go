package diagnose

// SPEAR's replay at one step (Algorithm 1; section 4.1): how full the buffer D is, how many of its
// rows are accepted, which is Ã > 0 with Ã = R − P50 of the baselines, the mean Ã of those, the
// curriculum's γ and μ, the replayed rows' importance ratios and their ages in steps. Departures:
// the age histogram and the ratios' spread are not in the paper; they show staleness.

import (
	"fmt"
	"slices"
)

// Replayed is one row of the buffer at the step.
type Replayed struct {
	Step      int     // at which it was collected
	Advantage float64 // Ã, recalibrated
	Accepted  bool
	Ratio     float64 // importance ratio of an accepted row; read for those alone
}

// ReplayState is the state of replay at a step.
type ReplayState struct {
	Step      int
	Gamma, Mu float64   // of the curriculum, [0, 1]
	Baselines []float64 // of the queue D_R
	Rows      []Replayed
}

// ReplayReport describes it.
type ReplayReport struct {
	Size       int // |D|
	Accepted   int
	Acceptance float64 // Accepted/Size, 0 of an empty buffer
	Advantage  float64 // mean Ã of accepted rows
	Baselines  int     // |D_R|
	P50        float64 // median of the baselines; 0 of none
	Gamma, Mu  float64
	Ratio      Spread // over accepted rows
	Ages       []Bin  // Step less the step of collection, over the whole buffer
}

// Replay describes a buffer.
func Replay(state ReplayState) (ReplayReport, error) {
	if err := state.check(); err != nil {
		return ReplayReport{}, err
	}
	out := ReplayReport{
		Size: len(state.Rows), Baselines: len(state.Baselines), P50: Percentile(state.Baselines, 0.5),
		Gamma: state.Gamma, Mu: state.Mu,
	}
	var advantage, ratio series
	var ages histogram
	for _, r := range state.Rows {
		ages.add(state.Step-r.Step, 1)
		if r.Accepted {
			advantage.add(r.Advantage)
			ratio.add(r.Ratio)
		}
	}
	out.Accepted, out.Acceptance = advantage.N, share(advantage.N, out.Size)
	out.Advantage, out.Ratio, out.Ages = advantage.Mean(), ratio.spread(), ages.bins()
	return out, nil
}

func (s ReplayState) check() error {
	for _, weight := range []float64{s.Gamma, s.Mu} {
		if !(weight >= 0 && weight <= 1) {
			return fmt.Errorf("%w: γ %g and μ %g must lie in [0, 1]", ErrBadInput, s.Gamma, s.Mu)
		}
	}
	if err := checkValues("baseline", s.Baselines); err != nil {
		return err
	}
	bad := slices.IndexFunc(s.Rows, func(r Replayed) bool {
		return r.Step > s.Step || !usable(r.Advantage) || r.Accepted && (!(r.Ratio >= 0) || !usable(r.Ratio))
	})
	if bad >= 0 {
		return fmt.Errorf("%w: replayed row %d at step %d is %+v", ErrBadInput, bad, s.Step, s.Rows[bad])
	}
	return nil
}
