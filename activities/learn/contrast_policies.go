package learn

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// ContrastPolicies estimates KL(replay's policy ‖ run's own policy) over the tokens of a step's rollout, of all
// trajectories, kept or not. A third policy has drawn these tokens: the estimate is k3, weighted by the replay's policy
// over the one that sampled (rl/diagnose/kl.go).
type ContrastPolicies struct{ *stage.Worker }

// Execute asks the trainer about one shard of the step after the other, and commits the mean over their tokens.
func (a ContrastPolicies) Execute(ctx context.Context, e *stage.Env, in api.ContrastInput) (out api.Contrasted,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageContrast, Turn: -1, Shard: -1,
		Inputs: []schema.Ref{in.Policy.Manifest, in.Own.Manifest}}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		trainer, err := w.Trainer(ctx, in.Scope, w.Recipe)
		if err != nil {
			return err
		}
		var kl diagnose.KL
		for _, shard := range in.Trajectories {
			if err := a.add(ctx, w, trainer, in, shard.Ref, &kl); err != nil {
				return err
			}
		}
		found := kl.Report()
		out.Tokens, w.Timing.Tokens = found.WeightedTokens, int64(found.WeightedTokens)
		if out.Tokens > 0 {
			out.KL, w.Stats = &found.Weighted, map[string]float64{schema.StatContrast: found.Weighted}
		}
		return nil
	})
	return out, err
}

// add adds the tokens of one shard. The run's own policy is loaded as the reference, so that neither policy has to be
// loaded again for the next shard.
func (a ContrastPolicies) add(ctx context.Context, w *stage.Draft, trainer *enginepool.Trainer, in api.ContrastInput,
	assembled schema.Ref, kl *diagnose.KL) error {
	refs, err := a.TurnRefs(ctx, assembled)
	if err != nil {
		return err
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, refs...)
	turns, err := record.WholeTurns(ctx, a.Records, refs...)
	if err != nil {
		return err
	}
	k := &keptTokens{trainer: trainer, recipe: w.Recipe, progress: w.Progress, kept: batch.Sampled(turns)}
	k.pieces = batch.CutPieces(k.kept, turns, w.Recipe.History())
	logProbs := func(role policy.Role, ref api.PolicyRef) (out [][]float32, err error) {
		err = trainer.Use(ctx, role, stage.Version(ref), false, func(t policy.Trainer) error {
			asked, err := k.ask(ctx, t, role, policy.OutLogProb)
			out = asked.LogProbs
			return err
		})
		return out, err
	}
	counterfactual, err := logProbs(policy.RolePolicy, in.Policy)
	if err != nil {
		return err
	}
	own, err := logProbs(policy.RoleReference, in.Own)
	if err != nil {
		return err
	}
	for i, t := range k.kept {
		if t.OldLogProbs == nil {
			continue
		}
		w.Timing.Rows++
		if err := kl.Add(diagnose.Row{Mask: t.LossMask, LogProbs: wide(counterfactual[i]), Reference: wide(own[i]),
			Old: wide(t.OldLogProbs)}); err != nil {
			return err
		}
	}
	return nil
}
