package analysis

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Episode is one trajectory with everything that was recorded of it.
type Episode struct {
	Prompt     schema.PromptRow
	Trajectory schema.TrajectoryRow // the zero row where its whole shard was skipped
	Turns      []schema.TurnRow
	Calls      []schema.ToolCallRow
	Judgement  *schema.JudgementRow // nil where no judge was asked
	// Transitions are what the actions led to, in an interactive environment.
	Transitions []schema.TransitionRow
	Reward      *schema.RewardRow // nil where it was excluded
	// Held is what an evaluation found; nil for a trajectory of a step, which has a selection and may have a reward.
	Held      *schema.EvaluationRow
	Selection schema.SelectionRow
	Advantage *float64 // before its weight; nil for a trajectory that is not in the batch
	// Advantages are the batch's, times the weight, one per token of all turns; nil for a trajectory that is not in it.
	Advantages []float32
}

// Closeup is an episode with the numbers of its tokens.
type Closeup struct {
	Episode
	Tokens TokenRow  // of all turns, one turn after the other
	Values []float32 // of the critic; nil where not recorded
}

// episodes joins the rows by trajectory, in canonical order, also of skipped shards.
func (t stepTables) episodes() []Episode {
	at := map[string]*Episode{}
	for _, r := range t.trajectories {
		at[r.TrajectoryID] = &Episode{Trajectory: r, Selection: schema.SelectionRow{GroupID: r.GroupID}}
	}
	for _, s := range t.selection {
		if at[s.TrajectoryID] == nil {
			at[s.TrajectoryID] = &Episode{}
		}
		at[s.TrajectoryID].Selection = s
	}
	t.addTurns(at)
	for i, r := range t.rewards {
		if e := at[r.TrajectoryID]; e != nil {
			e.Reward = &t.rewards[i]
		}
	}
	for i, j := range t.judgements {
		if e := at[j.TrajectoryID]; e != nil {
			e.Judgement = &t.judgements[i]
		}
	}
	for i, h := range t.held {
		if h.TrajectoryID != nil && at[*h.TrajectoryID] != nil {
			at[*h.TrajectoryID].Held = &t.held[i]
		}
	}
	for rows := range byTrajectory(t.batch, func(b schema.BatchRow) string { return b.TrajectoryID }) {
		if e := at[rows[0].TrajectoryID]; e != nil {
			e.Advantage, e.Advantages = advantage(rows), overlay(rows, e.Turns)
		}
	}
	prompts := make(map[string]schema.PromptRow, len(t.prompts))
	for _, p := range t.prompts {
		prompts[p.GroupID] = p
	}
	out := make([]Episode, 0, len(at))
	for _, id := range slices.Sorted(maps.Keys(at)) {
		at[id].Prompt = prompts[at[id].Selection.GroupID]
		out = append(out, *at[id])
	}
	return out
}

// addTurns adds the rows of turns to their trajectories, in order.
func (t stepTables) addTurns(at map[string]*Episode) {
	for _, r := range t.turns {
		if e := at[r.TrajectoryID]; e != nil {
			e.Turns = append(e.Turns, r)
		}
	}
	for _, c := range t.calls {
		if e := at[c.TrajectoryID]; e != nil {
			e.Calls = append(e.Calls, c)
		}
	}
	for _, x := range t.transitions {
		if e := at[x.TrajectoryID]; e != nil {
			e.Transitions = append(e.Transitions, x)
		}
	}
	for _, e := range at {
		slices.SortFunc(e.Turns, func(a, b schema.TurnRow) int { return cmp.Compare(a.Turn, b.Turn) })
		slices.SortFunc(e.Calls, func(a, b schema.ToolCallRow) int {
			return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Call, b.Call))
		})
		slices.SortFunc(e.Transitions, func(a, b schema.TransitionRow) int { return cmp.Compare(a.Turn, b.Turn) })
	}
}

// closeups are the episodes with their tokens, and what other models say about these.
func (t stepTables) closeups() []Closeup {
	outputs := make(map[string]schema.TokenOutputsRow, len(t.outputs))
	for _, o := range t.outputs {
		outputs[o.TrajectoryID] = o
	}
	episodes := t.episodes()
	out := make([]Closeup, len(episodes))
	for i, e := range episodes {
		out[i].Episode = e
		if len(e.Turns) == 0 {
			continue
		}
		of, o := sequence(e.Turns), outputs[e.Selection.TrajectoryID]
		of.Advantages = of.whole(e.Advantages)
		of.OldLogProbs, of.ReferenceLogProbs = of.whole(o.OldLogProbs), of.whole(o.ReferenceLogProbs)
		if of.Entropies == nil {
			of.Entropies = of.whole(o.Entropies)
		}
		out[i].Tokens, out[i].Values = of, of.whole(o.Values)
	}
	return out
}

// Episodes returns every trajectory of a finished step with everything that was recorded of it, in canonical order.
func (v *Visible) Episodes(ctx context.Context, step int) ([]Episode, error) {
	t, err := v.tables(ctx, step)
	return slices.DeleteFunc(t.episodes(), func(e Episode) bool { return e.Trajectory.TrajectoryID == "" }), err
}

// Closeups returns every trajectory of a finished step with the numbers of its tokens, in canonical order; with held,
// every episode of the step's evaluation, by problem and sample. The greedy episode of a problem is its last.
func (v *Visible) Closeups(ctx context.Context, step int, held bool) ([]Closeup, error) {
	read := v.tables
	if held {
		read = v.evaluationTables
	}
	t, err := read(ctx, step)
	if err != nil || held {
		return t.closeups(), err
	}
	if t.outputs, err = stepRows[schema.TokenOutputsRow](ctx, v, step); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(t.closeups(), func(c Closeup) bool { return c.Trajectory.TrajectoryID == "" }), nil
}
