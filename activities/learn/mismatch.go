package learn

import (
	"log/slog"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// mismatch compares the trainer's log-probabilities with those that inference servers gave for the same tokens, of the
// same version: that of the update, or an earlier one that has sampled. It returns nil if the engine itself has
// sampled, and if the rollout's distribution was cut: the servers' log-probabilities are then those of other
// distributions than the trainer's.
func (k *keptTokens) mismatch(ref api.PolicyRef) (map[string]float64, error) {
	if len(k.recipe.Engine.Servers) == 0 || k.recipe.Rollout.Truncation().Active() {
		return nil, nil
	}
	var m diagnose.Mismatch
	for i, t := range k.kept {
		of, ours := ref.Digest, k.rows[i].OldLogProbs
		if k.sampled != nil {
			of, ours = k.sampled[i].PolicyVersion, k.sampled[i].LogProbs
		}
		if ours == nil || t.OldLogProbs == nil || k.versions[t.TrajectoryID] != of {
			continue
		}
		if err := m.Add(diagnose.Row{Mask: t.LossMask, LogProbs: wide(ours),
			Old: wide(t.OldLogProbs)}); err != nil {
			return nil, err
		}
	}
	r := m.Report()
	if r.Tokens == 0 {
		return nil, nil
	}
	slog.Info("sampler and trainer apart, in nats per token", "tokens", r.Tokens, "mean", r.Mean, "p99", r.P99, "max",
		r.Max, "beyond 1%", r.Beyond)
	if limit := k.recipe.Engine.MaxMismatch; limit > 0 && r.Mean > limit {
		return nil, refusal.Unusablef("engine.max_mismatch: the servers' log-probabilities are %.3g nats per token "+
			"from the trainer's on average (99%% up to %.3g, at most %.3g), more than %g; check the servers' number "+
			"types, raise the limit, or correct the difference with loss.tis", r.Mean, r.P99, r.Max, limit)
	}
	return map[string]float64{schema.StatMismatchTokens: float64(r.Tokens), schema.StatMismatchMean: r.Mean,
		schema.StatMismatchP99: r.P99, schema.StatMismatchMax: r.Max, schema.StatMismatchBeyond: r.Beyond}, nil
}

// versionsOf returns the version that wrote each trajectory; "" where several did.
func versionsOf(turns []schema.TurnRow) map[string]string {
	out := map[string]string{}
	for _, t := range turns {
		if before, ok := out[t.TrajectoryID]; ok && before != t.PolicyVersion {
			out[t.TrajectoryID] = ""
			continue
		}
		out[t.TrajectoryID] = t.PolicyVersion
	}
	return out
}

func wide(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
