package selection

import (
	"slices"

	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Facts are what filters read: a step's trajectories and, for filters that read tokens, their turns.
type Facts struct {
	Trajectories []schema.TrajectoryRow
	// Turns may be nil unless ReadsTurns.
	Turns []schema.TurnRow
}

// ReadsFacts reports whether a recipe's selection reads more than rewards.
func ReadsFacts(r *recipes.Recipe) bool { return len(masksOf(r)) > 0 || r.DropsMixed() }

// ReadsTurns reports whether a recipe's selection reads turns: a filter their tokens, or the drop of mixed groups their
// versions.
func ReadsTurns(r *recipes.Recipe) bool {
	return r.DropsMixed() || slices.ContainsFunc(masksOf(r), func(m resample.Mask) bool { return m.Tokens })
}

// Fill sets for each row which of the recipe's filters match its trajectory and, if the recipe drops mixed groups,
// whether its group is one. A trajectory that was cut off at a token limit, which may be the limit of a turn, counts as
// if it had the maximum length.
func (f Facts) Fill(rows []resample.Row, recipe *recipes.Recipe) error {
	filters, written := masksOf(recipe), f.written()
	for _, m := range filters {
		if err := m.Validate(); err != nil {
			return err
		}
	}
	of := make(map[string]schema.TrajectoryRow, len(f.Trajectories))
	for _, t := range f.Trajectories {
		of[t.TrajectoryID] = t
	}
	var mixed map[string]bool
	if recipe.DropsMixed() {
		mixed = f.mixed()
	}
	for i := range rows {
		r := &rows[i]
		r.Mixed = mixed[r.GroupID]
		t, ok := of[r.TrajectoryID]
		if r.Excluded {
			continue
		}
		if !ok {
			return refusal.Corruptf("trajectory %s has a reward, and is not among those that the rewards were made "+
				"from", r.TrajectoryID)
		}
		response := responseOf(t, recipe)
		response.Tokens = written[r.TrajectoryID]
		for _, m := range filters {
			if m.VoidTurns && t.VoidTurns == nil {
				return refusal.Unusablef("filters.%s needs to know what the turns of trajectory %s did, which the "+
					"record does not say", m.Name, r.TrajectoryID)
			}
			if m.Masker.Mask(response) {
				r.Matched = append(r.Matched, m.Why)
			}
		}
	}
	return nil
}

// mixed returns the groups whose turns are of several versions.
func (f Facts) mixed() map[string]bool {
	first, out := map[string]string{}, map[string]bool{}
	for _, t := range f.Turns {
		if version, ok := first[t.GroupID]; ok && version != t.PolicyVersion {
			out[t.GroupID] = true
		}
		first[t.GroupID] = t.PolicyVersion
	}
	return out
}

// written returns, by trajectory, the tokens that the policy wrote in all turns, in order.
func (f Facts) written() map[string][]int32 {
	out := map[string][]int32{}
	for id, row := range batch.JoinTurns(f.Turns) {
		for t, m := range row.LossMask {
			if m == 1 {
				out[id] = append(out[id], row.TokenIDs[t])
			}
		}
	}
	return out
}

// responseOf is what filters read from a trajectory, without the tokens.
func responseOf(t schema.TrajectoryRow, recipe *recipes.Recipe) resample.Response {
	r := resample.Response{Text: t.Text, Limit: recipe.Rollout.MaxTokens}
	// With a history, the limit applies to a turn, and a trajectory may be longer.
	if recipe.History() == (rollout.History{}) {
		r.Length = int(t.Tokens)
	}
	if t.Finish == string(rollout.FinishLength) {
		r.Length = max(r.Length, recipe.Rollout.MaxTokens)
	}
	if t.VoidTurns != nil {
		r.VoidTurns = int(*t.VoidTurns)
	}
	return r
}
