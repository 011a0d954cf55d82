package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/offers"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// summed are the settings of interactive worlds with summaries.
var summed = []string{"rollout.summary={every: 2, max_tokens: 40}", "rollout.max_tokens=1500",
	"policy.max_positions=2048"}

// A step in an interactive environment with summaries: rewards, transitions and batch rows are those of the actions,
// and every summary has a row of its own, whether or not the worker remembers its episodes.
func TestAnInteractiveStepWithSummaries(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.recipe, func(t *testing.T) {
			interactiveStep(t, movedBench(t, w.recipe, mover{actions: w.actions}, summed...),
				movedBench(t, w.recipe, mover{actions: w.actions}, summed...), w.shared)
		})
	}
}

// One activity commits the manifests of the staged activities, and continues after a kill at any of its commits.
func TestActionsWithSummariesGoOnAfterKills(t *testing.T) {
	w := worlds[0]
	set := append([]string{"rollout.max_turns=8"}, summed...)
	staged := movedBench(t, w.recipe, mover{actions: w.actions}, set...)
	assembled, turns := staged.playShard(0, false)
	require.Len(t, turns, 12, "8 actions, 3 summaries, and a last look")

	b := movedBench(t, w.recipe, mover{actions: w.actions}, set...)
	objects := b.deps.Store
	in := api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 12}
	for _, place := range []string{"rollout/turn=0", "sandbox/turn=1", "rollout/turn=2", "rollout/turn=3",
		"rollout/turn=8", "sandbox/turn=9", "assemble"} {
		b.over(w.actions, faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place}))
		_, err := do(b, episodes.RunEpisodes{Worker: b.deps}.Execute, in)
		require.ErrorContains(t, err, faults.ErrInjected.Error(), place)
	}
	b.over(w.actions, objects)
	out, err := do(b, episodes.RunEpisodes{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, assembled, out.Assembled)
	rows := rowsAt[schema.TurnRow](b, turns...)
	report := offers.Join(rowsAt[schema.RewardRow](b, out.Scored.Manifest), rows, nil)
	for _, s := range report {
		require.LessOrEqual(t, len(s.Turns), 8, "what a world offers is told by its actions")
	}
}

// over switches to another worker, on a store.
func (b *stepBench) over(actions []string, objects store.Store) {
	b.t.Helper()
	recipe, err := b.deps.Recipes.Recipe(b.t.Context(), b.scope)
	require.NoError(b.t, err)
	tok, err := planning.TokenizerOf(recipe)
	require.NoError(b.t, err)
	engine := &mover{tok: tok, actions: actions}
	b.deps, err = New(stage.Options{Store: objects, Trainer: engine, Rollout: engine, Sandbox: &printer{nth: -1},
		Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: b.t.TempDir()})
	require.NoError(b.t, err)
	published(b.deps, b.policy.Digest)
}
