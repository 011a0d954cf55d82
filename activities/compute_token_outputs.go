package activities

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeTokenOutputs asks the models what the recipe needs to know of each kept token beyond what the
// rollout recorded, so that everything after it follows from the record alone.
type ComputeTokenOutputs struct{ *Deps }

// Execute commits one row per kept trajectory of the shard that is not masked; a shard without any has none.
func (a ComputeTokenOutputs) Execute(ctx context.Context, in wire.ForwardInput) (wire.Forwarded, error) {
	out := wire.Forwarded{}
	inputs := append(slices.Clone(in.Turns), in.Selection)
	s := spec{scope: in.Scope, stage: wire.StageForward, turn: -1, shard: in.Shard, inputs: inputs}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		f, err := a.begin(ctx, w, in)
		if err != nil {
			return err
		}
		if err := f.run(ctx, in); err != nil {
			return err
		}
		for _, t := range f.kept {
			for _, m := range t.LossMask {
				out.Tokens += int64(m)
			}
		}
		out.Rows = len(f.rows)
		w.timing.Rows, w.timing.Tokens = int64(out.Rows), out.Tokens
		return put(ctx, w, f.rows)
	})
	return out, err
}

// begin finds the shard's kept trajectories, and the reference policy where it is needed.
func (a ComputeTokenOutputs) begin(ctx context.Context, w *draft, in wire.ForwardInput) (*forward, error) {
	recipe, err := a.recipe(ctx, in.Scope)
	if err != nil {
		return nil, err
	}
	selection, err := read[schema.SelectionRow](ctx, a.Deps, in.Selection)
	if err != nil {
		return nil, err
	}
	turns, err := read[schema.TurnRow](ctx, a.Deps, in.Turns...)
	if err != nil {
		return nil, err
	}
	trainer, err := w.trainer(ctx, in.Scope, recipe)
	if err != nil {
		return nil, err
	}
	f := &forward{trainer: trainer, recipe: recipe, progress: w.progress, kept: keptTokens(selection, turns)}
	for _, t := range f.kept {
		f.rows = append(f.rows, schema.TokenOutputsRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID})
	}
	f.cut(turns)
	w.manifest.Inputs = append(w.manifest.Inputs, in.Policy.Manifest)
	if recipe.Outputs().Reference {
		if f.reference, err = a.reference(ctx, in.Scope, recipe); err != nil {
			return nil, err
		}
		if f.reference.Manifest != in.Policy.Manifest {
			w.manifest.Inputs = append(w.manifest.Inputs, f.reference.Manifest)
		}
	}
	if recipe.Outputs().Values {
		if f.critic, err = a.criticOf(ctx, in.Policy); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// keptTokens joins the turns of the trajectories that were kept and are not masked, in canonical order.
func keptTokens(selection []schema.SelectionRow, turns []schema.TurnRow) []schema.BatchRow {
	tokens := joinTurns(turns)
	var out []schema.BatchRow
	for _, s := range selection {
		row, ok := tokens[s.TrajectoryID]
		if !s.Kept || s.Masked != nil || !ok { // of another shard
			continue
		}
		row.GroupID, row.TrajectoryID = s.GroupID, s.TrajectoryID
		out = append(out, row)
	}
	slices.SortFunc(out, func(x, y schema.BatchRow) int { return cmp.Compare(x.TrajectoryID, y.TrajectoryID) })
	return out
}

// reference finds the checkpoint that is the reference policy of a step.
func (d *Deps) reference(ctx context.Context, scope wire.Scope, recipe *recipes.Recipe) (wire.PolicyRef, error) {
	step := recipe.ReferenceStep(scope.Step)
	m, out, err := d.policyAfter(ctx, scope.Run, step)
	if err != nil {
		return out, fmt.Errorf("find the reference of step %d: %w", scope.Step, err)
	}
	pruned, err := d.Store.List(ctx, m.Checkpoint.Prefix+schema.PrunedFile)
	if err != nil {
		return out, fmt.Errorf("find the reference of step %d: %w", scope.Step, err)
	}
	if len(pruned) > 0 {
		return out, refuse(wire.FailRefused, "the reference of step %d is the policy after step %d, whose checkpoint is pruned; choose another loss.reference.refresh_every or schedule.stages", scope.Step, step)
	}
	return out, nil
}

// policyAfter finds the checkpoint that a step left; step 0 stands for the warm start.
func (d *Deps) policyAfter(ctx context.Context, run string, step int) (m schema.Manifest, out wire.PolicyRef, err error) {
	out.Step = step
	found := false
	if step == 0 {
		m, out.Manifest, found, err = d.Record.Lookup(ctx, schema.AtInit(run, wire.StageWarmStart))
	} else {
		m, out.Manifest, found, err = d.updateOf(ctx, run, step)
	}
	if err != nil {
		return m, out, err
	}
	if !found || m.Checkpoint == nil {
		return m, out, refuse(wire.FailCorrupt, "run %s commits no checkpoint of the policy after step %d", run, step)
	}
	out.Digest = m.Checkpoint.Digest
	return m, out, nil
}

// forward is one shard's kept trajectories and what the models make of them.
type forward struct {
	trainer   *slot
	recipe    *recipes.Recipe
	progress  *progress
	kept      []schema.BatchRow
	pieces    []piece
	rows      []schema.TokenOutputsRow
	reference wire.PolicyRef
	critic    wire.PolicyRef
}

func (f *forward) run(ctx context.Context, in wire.ForwardInput) error {
	if len(f.rows) == 0 {
		return nil
	}
	if err := f.fromPolicy(ctx, in.Policy); err != nil {
		return err
	}
	if err := f.fromReference(ctx, in.Policy); err != nil || !f.recipe.Outputs().Values {
		return err
	}
	return f.trainer.useAs(ctx, policy.RoleCritic, f.critic, func(engine policy.Engine) error {
		out, err := f.ask(ctx, engine, policy.RoleCritic, policy.OutValue)
		for i := range out.Values {
			f.rows[i].Values, f.rows[i].CriticVersion = out.Values[i], f.critic.Digest
		}
		return err
	})
}

// fromPolicy fills in old log-probabilities and entropies.
func (f *forward) fromPolicy(ctx context.Context, ref wire.PolicyRef) error {
	var outputs policy.Outputs
	needs := f.recipe.Outputs()
	if needs.OldLogProbs {
		outputs |= policy.OutLogProb
	}
	if needs.Entropies {
		outputs |= policy.OutEntropy
	}
	if outputs == 0 {
		return nil
	}
	return f.trainer.use(ctx, ref, false, func(engine policy.Engine) error {
		out, err := f.ask(ctx, engine, policy.RolePolicy, outputs)
		for i := range out.LogProbs {
			f.rows[i].OldLogProbs, f.rows[i].PolicyVersion = out.LogProbs[i], ref.Digest
		}
		for i := range out.Entropies {
			f.rows[i].Entropies, f.rows[i].PolicyVersion = out.Entropies[i], ref.Digest
		}
		return err
	})
}

// fromReference fills in the reference's log-probabilities. Where the policy itself is the reference,
// no second model is loaded, and what the policy has said is not asked again.
func (f *forward) fromReference(ctx context.Context, own wire.PolicyRef) error {
	if !f.recipe.Outputs().Reference {
		return nil
	}
	fill := func(role policy.Role) func(policy.Engine) error {
		return func(engine policy.Engine) error {
			out, err := f.ask(ctx, engine, role, policy.OutLogProb)
			for i := range out.LogProbs {
				f.rows[i].ReferenceLogProbs, f.rows[i].ReferenceVersion = out.LogProbs[i], f.reference.Digest
			}
			return err
		}
	}
	switch {
	case f.reference.Digest != own.Digest:
		return f.trainer.useAs(ctx, policy.RoleReference, f.reference, fill(policy.RoleReference))
	case !f.recipe.Outputs().OldLogProbs:
		return f.trainer.use(ctx, own, false, fill(policy.RolePolicy))
	}
	for i := range f.rows {
		f.rows[i].ReferenceLogProbs, f.rows[i].ReferenceVersion = f.rows[i].OldLogProbs, own.Digest
	}
	return nil
}

// ask runs a model over the kept trajectories, as the rollout's temperature has it, and blanks what
// is off the loss mask.
func (f *forward) ask(ctx context.Context, engine policy.Engine, role policy.Role, outputs policy.Outputs) (policy.TokenOutputs, error) {
	sequences := make([][]int32, len(f.pieces))
	for i, p := range f.pieces {
		sequences[i] = p.tokens
	}
	out, err := learner.Outputs(ctx, engine, policy.ForwardRequest{
		Role: role, Sequences: sequences, Temperature: f.recipe.Rollout.Temperature, Outputs: outputs,
	}, f.recipe.Optimizer.MicrobatchTokens, f.progress.set)
	if err != nil {
		return policy.TokenOutputs{}, err
	}
	out.LogProbs, out.Entropies, out.Values = f.join(out.LogProbs), f.join(out.Entropies), f.join(out.Values)
	for _, lists := range [][][]float32{out.LogProbs, out.Entropies, out.Values} {
		for i := range lists {
			if err := f.blank(role, i, lists[i]); err != nil {
				return policy.TokenOutputs{}, err
			}
		}
	}
	return out, nil
}

// blank zeroes what is off a trajectory's loss mask; what is under it must be finite.
func (f *forward) blank(role policy.Role, i int, values []float32) error {
	for t, m := range f.kept[i].LossMask {
		if m == 0 {
			values[t] = 0
		} else if v := float64(values[t]); math.IsNaN(v) || math.IsInf(v, 0) {
			return &policy.NonFiniteError{Name: fmt.Sprintf("output of the %s for token %d of trajectory %s", role, t, f.kept[i].TrajectoryID)}
		}
	}
	return nil
}
