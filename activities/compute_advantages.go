package activities

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeAdvantages lays the kept trajectories' tokens and advantages into the training batch.
type ComputeAdvantages struct{ *Deps }

// Execute writes the batch, each kept row once, its advantage multiplied by its weight.
func (a ComputeAdvantages) Execute(ctx context.Context, in wire.AdvantageInput) (wire.Advantages, error) {
	out := wire.Advantages{}
	inputs := append(slices.Clone(in.Turns), in.Rewards, in.Selection)
	if in.Outputs != (schema.Ref{}) {
		inputs = append(inputs, in.Outputs)
	}
	s := spec{scope: in.Scope, stage: wire.StageAdvantage, turn: -1, shard: -1, inputs: inputs}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		batch, err := a.batch(ctx, w, in, recipe)
		if err != nil {
			return err
		}
		for _, row := range batch {
			for _, m := range row.LossMask {
				out.Tokens += int64(m)
			}
		}
		out.Rows = len(batch)
		w.timing.Rows, w.timing.Tokens = int64(out.Rows), out.Tokens
		schema.SortBatch(batch)
		data, err := schema.EncodeBatch(batch)
		if err != nil {
			return err
		}
		return w.shard(ctx, schema.Batch, data, len(batch))
	})
	return out, err
}

// batch lays the kept trajectories out in rows and gives their tokens advantages.
func (a ComputeAdvantages) batch(ctx context.Context, w *draft, in wire.AdvantageInput, recipe *recipes.Recipe) ([]schema.BatchRow, error) {
	selection, err := read[schema.SelectionRow](ctx, a.Deps, in.Selection)
	if err != nil {
		return nil, err
	}
	rewards, err := read[schema.RewardRow](ctx, a.Deps, in.Rewards)
	if err != nil {
		return nil, err
	}
	turns, err := read[schema.TurnRow](ctx, a.Deps, in.Turns...)
	if err != nil {
		return nil, err
	}
	kept, err := keptSequences(selection, rewards, turns)
	if err != nil {
		return nil, err
	}
	if err := a.addOutputs(ctx, in, recipe, kept); err != nil {
		return nil, err
	}
	e := estimation{method: recipe.Method(), rows: layOut(kept, recipe.Layout, recipe.Rollout.History)}
	if e.beta, err = a.klCoefficient(ctx, w, in.Scope, recipe); err != nil {
		return nil, err
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	w.stats = e.stats
	return e.batch(), nil
}

// addOutputs puts what the models make of the tokens beside them.
func (a ComputeAdvantages) addOutputs(ctx context.Context, in wire.AdvantageInput, recipe *recipes.Recipe, kept []sequence) error {
	if !recipe.Outputs().Any() {
		return nil
	}
	if in.Outputs == (schema.Ref{}) {
		return refuse(wire.FailRefused, "the recipe needs token outputs, and step %d of run %s has committed none", in.Step, in.Run)
	}
	outputs, err := read[schema.TokenOutputsRow](ctx, a.Deps, in.Outputs)
	if err != nil {
		return err
	}
	return joinOutputs(kept, outputs, recipe)
}

// joinOutputs joins the sequences with their token outputs. No model was asked about a masked one: whatever
// its outputs were, they would be off the loss mask, where all outputs are 0.
func joinOutputs(kept []sequence, outputs []schema.TokenOutputsRow, recipe *recipes.Recipe) error {
	of := make(map[string]schema.TokenOutputsRow, len(outputs))
	for _, o := range outputs {
		of[o.TrajectoryID] = o
	}
	for i := range kept {
		o, ok := of[kept[i].TrajectoryID]
		if !ok && kept[i].masked {
			o = noOutputs(len(kept[i].TokenIDs))
		} else if !ok {
			return refuse(wire.FailRefused, "trajectory %s is kept and has no token outputs: it was not kept when the step's forward pass ran, or was masked, and another needs the engine; "+
				"replay through resample alone to see the selection, or run the recipe again with the settings: ropewalk run RECIPE --set path=value", kept[i].TrajectoryID)
		}
		if err := kept[i].join(o, recipe); err != nil {
			return err
		}
	}
	return nil
}

// noOutputs are those of n tokens off the loss mask.
func noOutputs(n int) schema.TokenOutputsRow {
	none := make([]float32, n)
	return schema.TokenOutputsRow{OldLogProbs: none, Entropies: none, ReferenceLogProbs: none, Values: none}
}

// join takes in the outputs that the recipe's method needs.
func (s *sequence) join(o schema.TokenOutputsRow, recipe *recipes.Recipe) error {
	needs := recipe.Method().Needs()
	if needs.OldLogProbs {
		if needs.RolloutLogProbs {
			s.RolloutLogProbs = s.OldLogProbs
		}
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
			return refuse(wire.FailRefused, "the token outputs of trajectory %s hold no %s, which the recipe needs", s.TrajectoryID, n.what)
		case len(n.from) != len(s.TokenIDs):
			return refuse(wire.FailCorrupt, "the token outputs of trajectory %s hold %s of %d tokens, and it has %d", s.TrajectoryID, n.what, len(n.from), len(s.TokenIDs))
		default:
			*n.to = n.from
		}
	}
	if kl := recipe.Loss.KL; kl != nil && kl.In == klInLoss {
		s.ReferenceLogProbs = s.reference
	}
	return nil
}
