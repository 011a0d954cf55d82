package batch

import (
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/schema"
)

// JoinOutputs adds the token outputs that the recipe's method needs to the sequences. No model was asked about a
// masked sequence: all its tokens are off the loss mask, where all outputs are 0.
func JoinOutputs(kept []Sequence, outputs []schema.TokenOutputsRow, recipe *recipes.Recipe) error {
	of := make(map[string]schema.TokenOutputsRow, len(outputs))
	for _, o := range outputs {
		of[o.TrajectoryID] = o
	}
	for i := range kept {
		o, ok := of[kept[i].TrajectoryID]
		if !ok && kept[i].masked {
			o = noOutputs(len(kept[i].TokenIDs))
		} else if !ok {
			return refusal.Unusablef("trajectory %s is kept and has no token outputs: it was not kept when the step's "+
				"forward pass ran, or was masked, and another needs the engine; replay through resample alone to see "+
				"the selection, or run the recipe again with the settings: ropewalk run RECIPE --set path=value",
				kept[i].TrajectoryID)
		}
		if err := kept[i].join(o, recipe); err != nil {
			return err
		}
	}
	return nil
}

// noOutputs are the outputs of n tokens off the loss mask.
func noOutputs(n int) schema.TokenOutputsRow {
	none := make([]float32, n)
	return schema.TokenOutputsRow{OldLogProbs: none, Entropies: none, ReferenceLogProbs: none, Values: none}
}

// join adds the outputs that the recipe's method needs.
func (s *Sequence) join(o schema.TokenOutputsRow, recipe *recipes.Recipe) error {
	needs := recipe.Method().Needs()
	if needs.OldLogProbs && needs.RolloutLogProbs {
		s.RolloutLogProbs = s.OldLogProbs
	}
	for _, n := range []struct {
		needed bool
		from   []float32
		to     *[]float32
		what   string
	}{
		{needs.OldLogProbs, o.OldLogProbs, &s.OldLogProbs, "log-probabilities of the policy"},
		{needs.Reference, o.ReferenceLogProbs, &s.reference, "log-probabilities of the reference"},
		{needs.Entropies, o.Entropies, &s.entropies, "entropies"},
		{needs.Values, o.Values, &s.Values, "values of the critic"},
	} {
		switch {
		case !n.needed:
		case n.from == nil:
			return refusal.Unusablef("the token outputs of trajectory %s hold no %s, which the recipe needs",
				s.TrajectoryID, n.what)
		case len(n.from) != len(s.TokenIDs):
			return refusal.Corruptf("the token outputs of trajectory %s hold %s of %d tokens, and it has %d",
				s.TrajectoryID, n.what, len(n.from), len(s.TokenIDs))
		default:
			*n.to = n.from
		}
	}
	if kl := recipe.Loss.KL(); kl != nil && kl.In == loss.KLInLoss {
		s.ReferenceLogProbs = s.reference
	}
	return nil
}

// JoinTransitions adds the transitions of an interactive environment to the turns of the sequences. Each turn of a
// kept trajectory that is no summary must have one.
func JoinTransitions(kept []Sequence, transitions []schema.TransitionRow) error {
	of := map[string]map[int32]schema.TransitionRow{}
	for _, r := range transitions {
		if of[r.TrajectoryID] == nil {
			of[r.TrajectoryID] = map[int32]schema.TransitionRow{}
		}
		of[r.TrajectoryID][r.Turn] = r
	}
	for i := range kept {
		kept[i].steps = of[kept[i].TrajectoryID]
		acting := 0
		for _, t := range kept[i].turns {
			if !t.IsSummary() {
				acting++
			}
		}
		if len(kept[i].steps) != acting {
			return refusal.Corruptf("trajectory %s is selected and has %d turns and %d transitions",
				kept[i].TrajectoryID, acting, len(kept[i].steps))
		}
	}
	return nil
}
