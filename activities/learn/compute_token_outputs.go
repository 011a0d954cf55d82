package learn

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// ComputeTokenOutputs computes the values of each kept token that the recipe needs and the rollout did not record. So
// every later stage follows from the record alone.
type ComputeTokenOutputs struct{ *stage.Worker }

// Execute commits one row for each kept trajectory of the shard that is not masked; a shard without such trajectories
// has no rows.
func (a ComputeTokenOutputs) Execute(ctx context.Context, e *stage.Env, in api.TokenOutputsInput) (out api.TokenOutputs,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageLogprobs, Turn: -1, Shard: in.Shard}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		k, err := a.begin(ctx, w, in)
		if err != nil {
			return err
		}
		if err := k.run(ctx, in); err != nil {
			return err
		}
		out.Rows, out.Tokens = len(k.rows), batch.Tokens(k.kept)
		w.Timing.Rows, w.Timing.Tokens = int64(out.Rows), out.Tokens
		if w.Stats, err = k.mismatch(in.Policy); err != nil {
			return err
		}
		if err := stage.Put(ctx, w, k.rows); err != nil || !k.asksSampler(in) {
			return err
		}
		return stage.Put(ctx, w, k.sampled)
	})
	return out, err
}

// begin finds the shard's kept trajectories, and the reference policy if it is needed.
func (a ComputeTokenOutputs) begin(ctx context.Context, w *stage.Draft, in api.TokenOutputsInput) (*keptTokens, error) {
	recipe := w.Recipe
	selection, err := record.Read[schema.SelectionRow](ctx, a.Records, in.Selection)
	if err != nil {
		return nil, err
	}
	refs, err := a.TurnRefs(ctx, in.Assembled)
	if err != nil {
		return nil, err
	}
	w.Manifest.Inputs = append(append(w.Manifest.Inputs, refs...), in.Selection)
	turns, err := record.WholeTurns(ctx, a.Records, refs...)
	if err != nil {
		return nil, err
	}
	trainer, err := w.Trainer(ctx, in.Scope, recipe)
	if err != nil {
		return nil, err
	}
	k := &keptTokens{trainer: trainer, recipe: recipe, progress: w.Progress, kept: batch.Unmasked(selection, turns),
		versions: versionsOf(turns)}
	for _, t := range k.kept {
		k.rows = append(k.rows, schema.TokenOutputsRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID,
			LossMask: t.LossMask})
	}
	k.pieces = batch.CutPieces(k.kept, turns, recipe.History())
	w.Manifest.Inputs = append(w.Manifest.Inputs, in.Policy.Manifest)
	if k.asksSampler(in) {
		w.Manifest.Inputs = append(w.Manifest.Inputs, in.Sampling.Manifest)
	}
	if recipe.Outputs().Reference {
		if k.reference, err = a.Reference(ctx, in.Scope, recipe); err != nil {
			return nil, err
		}
		if !slices.Contains(w.Manifest.Inputs, k.reference.Manifest) {
			w.Manifest.Inputs = append(w.Manifest.Inputs, k.reference.Manifest)
		}
	}
	if recipe.Outputs().Values {
		if k.critic, err = a.CriticOf(ctx, in.Policy); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// keptTokens is one shard's kept trajectories and their outputs so far.
type keptTokens struct {
	trainer   *enginepool.Trainer
	recipe    *recipes.Recipe
	progress  *stage.Progress
	kept      []schema.BatchRow
	versions  map[string]string // that wrote each trajectory
	pieces    *batch.Pieces
	rows      []schema.TokenOutputsRow
	sampled   []schema.BehaviourRow // of the same trajectories, where the version that sampled is asked too
	reference api.PolicyRef
	critic    api.PolicyRef
}

func (k *keptTokens) run(ctx context.Context, in api.TokenOutputsInput) error {
	if len(k.rows) == 0 {
		return nil
	}
	if err := k.fromPolicy(ctx, in.Policy); err != nil {
		return err
	}
	if err := k.fromSampler(ctx, in); err != nil {
		return err
	}
	if err := k.fromReference(ctx, in.Policy); err != nil || !k.recipe.Outputs().Values {
		return err
	}
	return k.trainer.Use(ctx, policy.RoleCritic, stage.Version(k.critic), false, func(trainer policy.Trainer) error {
		out, err := k.ask(ctx, trainer, policy.RoleCritic, policy.OutValue)
		for i := range out.Values {
			k.rows[i].Values, k.rows[i].CriticVersion = out.Values[i], k.critic.Digest
		}
		return err
	})
}

// fromPolicy fills in old log-probabilities and entropies.
func (k *keptTokens) fromPolicy(ctx context.Context, ref api.PolicyRef) error {
	var outputs policy.Outputs
	needs := k.recipe.Outputs()
	if needs.OldLogProbs {
		outputs |= policy.OutLogProb
	}
	if needs.Entropies {
		outputs |= policy.OutEntropy
	}
	if outputs == 0 {
		return nil
	}
	return k.trainer.Use(ctx, policy.RolePolicy, stage.Version(ref), false, func(trainer policy.Trainer) error {
		out, err := k.ask(ctx, trainer, policy.RolePolicy, outputs)
		for i := range out.LogProbs {
			k.rows[i].OldLogProbs, k.rows[i].PolicyVersion = out.LogProbs[i], ref.Digest
		}
		for i := range out.Entropies {
			k.rows[i].Entropies, k.rows[i].PolicyVersion = out.Entropies[i], ref.Digest
		}
		return err
	})
}

// asksSampler reports whether the trainer is asked about the version that sampled. It need not be where the engine
// itself has sampled, because the rollout's log-probabilities are then its own.
func (k *keptTokens) asksSampler(in api.TokenOutputsInput) bool {
	return in.Sampling != nil && len(k.recipe.Engine.Servers) > 0
}

// fromSampler fills in the trainer's log-probabilities under the version that sampled, where that is an earlier one. It
// is loaded in the place of the reference, so that the policy keeps its optimiser's state.
func (k *keptTokens) fromSampler(ctx context.Context, in api.TokenOutputsInput) error {
	if !k.asksSampler(in) {
		return nil
	}
	return k.trainer.Use(ctx, policy.RoleReference, stage.Version(*in.Sampling), false,
		func(trainer policy.Trainer) error {
			out, err := k.ask(ctx, trainer, policy.RoleReference, policy.OutLogProb)
			for i, probs := range out.LogProbs {
				k.sampled = append(k.sampled, schema.BehaviourRow{GroupID: k.rows[i].GroupID,
					TrajectoryID: k.rows[i].TrajectoryID, LogProbs: probs, PolicyVersion: in.Sampling.Digest,
					LossMask: k.rows[i].LossMask})
			}
			return err
		})
}

// fromReference fills in the reference's log-probabilities. If the policy itself is the reference, no second model is
// loaded, and outputs that the policy has already given are not computed again.
func (k *keptTokens) fromReference(ctx context.Context, own api.PolicyRef) error {
	if !k.recipe.Outputs().Reference {
		return nil
	}
	fill := func(role policy.Role) func(policy.Trainer) error {
		return func(trainer policy.Trainer) error {
			out, err := k.ask(ctx, trainer, role, policy.OutLogProb)
			for i := range out.LogProbs {
				k.rows[i].ReferenceLogProbs, k.rows[i].ReferenceVersion = out.LogProbs[i], k.reference.Digest
			}
			return err
		}
	}
	switch {
	case k.reference.Digest != own.Digest:
		return k.trainer.Use(ctx, policy.RoleReference, stage.Version(k.reference), false, fill(policy.RoleReference))
	case !k.recipe.Outputs().OldLogProbs:
		return k.trainer.Use(ctx, policy.RolePolicy, stage.Version(own), false, fill(policy.RolePolicy))
	}
	for i := range k.rows {
		k.rows[i].ReferenceLogProbs, k.rows[i].ReferenceVersion = k.rows[i].OldLogProbs, own.Digest
	}
	return nil
}

// ask runs a model over the kept trajectories, at the rollout's temperature.
func (k *keptTokens) ask(ctx context.Context, trainer policy.Trainer, role policy.Role,
	outputs policy.Outputs) (policy.TokenOutputs, error) {
	out, err := learner.Outputs(ctx, trainer, policy.ForwardRequest{
		Role: role, Sequences: k.pieces.Tokens(), Temperature: k.recipe.Rollout.Temperature, Outputs: outputs,
	}, k.recipe.Optimizer.MicrobatchTokens, k.progress.Set)
	if err != nil {
		return policy.TokenOutputs{}, err
	}
	return k.pieces.Join(role, out)
}
