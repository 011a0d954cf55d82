package recipes

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// The keys of warm starts are digests of this form: the rule's settings are among the others, an absent section has
// zeros, and AdamW has no name.
func TestOptimizerInTheKeyOfAWarmStart(t *testing.T) {
	r, err := Resolve("quickstart", "", []string{"warm_start.optimizer={lr: 0.003, warmup_steps: 10, decay: cosine, " +
		"beta2: 0.98, minibatches: 1}"}, nil, nil)
	require.NoError(t, err)
	o := r.Recipe.WarmStart.Optimizer
	rule, err := o.Rule()
	require.NoError(t, err)
	require.Equal(t, optimizer.AdamW{Beta1: 0.9, Beta2: 0.98, Epsilon: 1e-8}, rule)
	for _, c := range []struct {
		of   Optimizer
		want string
	}{
		{o, `{"lr": 0.003, "warmup_steps": 10, "decay": "cosine", "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8,
			"weight_decay": 0, "clip_norm": 1, "minibatches": 1, "minibatch_rows": 0, "minibatch_prompts": 0, "epochs": 1,
			"microbatch_tokens": 4096, "share_prefixes": false}`},
		{Optimizer{}, `{"lr": 0, "warmup_steps": 0, "decay": "", "beta1": 0, "beta2": 0, "epsilon": 0, "weight_decay": 0,
			"clip_norm": 0, "minibatches": 0, "minibatch_rows": 0, "minibatch_prompts": 0, "epochs": 0, "microbatch_tokens": 0,
			"share_prefixes": false}`},
	} {
		text, err := json.Marshal(c.of)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(text))
	}
	_, err = Resolve("quickstart", "", []string{"optimizer.name=lion"}, nil, nil)
	require.ErrorContains(t, err, "optimizer.name=lion: must be")
}
