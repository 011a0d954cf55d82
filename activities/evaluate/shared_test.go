package evaluate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// Recipes share the evaluation of their first policy unless they differ in a field that its rows follow from. A recipe
// with programs shares none.
func TestWhatTheFirstEvaluationFollowsFrom(t *testing.T) {
	shared := func(recipe string, set ...string) string {
		resolved, err := recipes.Resolve(recipe, "", set, nil, nil)
		require.NoError(t, err, set)
		text, err := Shared(&resolved.Recipe)
		require.NoError(t, err, set)
		return text
	}
	same := shared("quickstart")
	for _, set := range []string{
		"name=other", "description=other", "steps=7", "rollout.mode=staged", "rollout.prompts=3",
		"rollout.samples_per_prompt=16", "rollout.shard_groups=2", "rollout.temperature=0.9", "evaluation.every=3",
		"resample.vspo=null", "advantage.std=false", "loss.clip_high=0.3", "optimizer.lr=0.02",
		"checkpoint.keep_last=7", "record.compact=true", "loss.old_log_probs=recompute",
	} {
		require.Equal(t, same, shared("quickstart", set), set)
	}
	different := map[string]string{same: ""}
	for _, set := range []string{
		"seed=2", "evaluation.problems=9", "evaluation.samples=2", "evaluation.temperature=0.5",
		"evaluation.top_k=3", "evaluation.greedy=false", "environment.level_shares={\"2\": 1}",
		"rollout.protocol=chat", "rollout.max_turns=2", "rollout.max_turn_tokens=50", "rollout.max_tokens=150",
		"rollout.max_tool_text_bytes=99", "rollout.max_calls=1", "sandbox.memory_mb=300", "sandbox.session=true",
		"policy.hidden=64", "warm_start.steps=99", "reward.name=exact_match",
	} {
		text := shared("quickstart", set)
		require.NotContains(t, different, text, set)
		different[text] = set
	}
	require.Empty(t, shared("household", "environment.name=python",
		`environment.settings={path: "/w", module: "w:W", expert: true}`), "what the package does can change")

	resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	for _, s := range []sharedInputs{{Stage: "initial"}, {Tag: "warm_start"}, {Policy: "p"}, {Code: "c"},
		{Machine: policy.Description{BLAS: "openblas"}}} {
		text, err := s.digest(sampledBy(&resolved.Recipe))
		require.NoError(t, err)
		require.NotContains(t, different, text, s)
		different[text] = s.Tag
	}
	advised, err := sharedInputs{Machine: policy.Description{Advice: "install it"}}.digest(sampledBy(&resolved.Recipe))
	require.NoError(t, err)
	require.Equal(t, same, advised)
}
