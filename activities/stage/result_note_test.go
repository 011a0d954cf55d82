package stage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// A manifest's note holds a result without the part that belongs to the attempt. Its bytes are part of the record, so
// they never change.
func TestResultNote(t *testing.T) {
	attempt := api.Done{Manifest: schema.Ref{Key: "k", Digest: "d"}, Adopted: true, Home: "a",
		Timing: api.Timing{Stage: "reward", Start: 1, End: 2}}
	policy := api.PolicyRef{Manifest: schema.Ref{Key: "u", Digest: "e"}, Digest: "c", Step: 2}
	done, generated := attempt, api.Generated{Done: attempt, Calls: 3, Tokens: 40}
	scored := api.Scored{Done: attempt, Trajectories: 6, RewardSum: 3.5, Successes: 3, PositiveCalls: 4,
		PositiveErrors: 1, ToolCalls: 9, Tokens: 120, Excluded: 2}
	resampled := api.Resampled{Done: attempt, Kept: 5, Dropped: 1, KeptGroups: 2,
		Reasons: map[string]int{"b<": 1, "a": 2}}
	none := 0.0
	updated := api.Updated{Done: attempt, Policy: policy, Loss: 0.5, Entropy: &none, GradNorm: &none, Tokens: 7}
	replayed := api.ReplayPrepared{Done: attempt, Gen: 2, Chain: "roc",
		Made: api.Made{{Stage: "rollout", Ref: schema.Ref{Key: "t", Digest: "f"}}}}
	for _, tt := range []struct {
		out  api.Result
		want string
	}{
		{&done, `{}`},
		{&generated, `{"calls":3,"tokens":40}`},
		{&scored, `{"agreed":0,"compared":0,"excluded":2,"positive_calls":4,"positive_errors":1,` +
			`"reward_sum":3.5,"successes":3,"tokens":120,"tool_calls":9,"trajectories":6}`},
		{&resampled, `{"dropped":1,"dropped_groups":0,"kept":5,"kept_groups":2,` +
			`"reasons":{"a":2,"b\u003c":1}}`},
		{&updated, `{"clip_fraction":0,"drift":0,"entropy":0,"grad_norm":0,"kl":0,"loss":0.5,` +
			`"policy":{"manifest":{"key":"u","digest":"e"},"digest":"c","step":2},"tokens":7}`},
		{&replayed, `{"chain":"roc","gen":2,` +
			`"made":[{"stage":"rollout","ref":{"key":"t","digest":"f"}}]}`},
	} {
		got, err := ResultNote(tt.out)
		require.NoError(t, err)
		require.Equal(t, tt.want, string(got))
		require.Equal(t, attempt, *tt.out.Common(), "the attempt keeps its part")
	}
}
