package analysis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// ErrNoGroup means that the step has no group of that number.
var ErrNoGroup = errors.New("the step has no such group")

// Choice selects the trajectories of a step to show.
type Choice struct {
	N     int // number of trajectories
	Group int // only this group; AnyGroup for all
}

// AnyGroup selects from all groups of a step.
const AnyGroup = -1

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

// StepView is a step and a few of its trajectories.
type StepView struct {
	Run      string
	Gen      Generation
	Summary  StepSummary
	Dropped  []Reason    // by name
	Judged   []Judgement // by model, criterion and verdict; nil if no judge was asked
	Episodes []Episode
	layout   Layout
}

// Reason counts the trajectories dropped for one reason.
type Reason struct {
	Name string
	N    int
}

// Step reads one finished step and selects trajectories from it. The selection depends only on the record and the
// choice: one kept positive, one kept negative, one dropped for each reason, then the next of each, from as many groups
// as possible.
func (r *Record) Step(ctx context.Context, run string, step int, choice Choice) (StepView, error) {
	v, err := r.Visible(ctx, run)
	if err != nil {
		return StepView{}, err
	}
	rewards, err := stepRows[schema.RewardRow](ctx, v, step)
	if err != nil {
		return StepView{}, err
	}
	selection, err := stepRows[schema.SelectionRow](ctx, v, step)
	if err != nil {
		return StepView{}, err
	}
	updates, err := stepRows[schema.UpdateRow](ctx, v, step)
	if err != nil {
		return StepView{}, err
	}
	out := StepView{Run: run, Gen: r.gen, Summary: summarise(step, rewards, selection, updates),
		Dropped: reasons(selection)}
	apart, err := v.mismatches(ctx)
	if err != nil {
		return StepView{}, err
	}
	out.Summary.Mismatch = apart[step]
	judged, err := stepRows[schema.JudgementRow](ctx, v, step, "trajectory_id", "criterion", "model", "verdict",
		"excluded")
	if err != nil {
		return StepView{}, err
	}
	out.Judged = judgements(judged)
	chosen := choose(candidates(rewards, selection, step, choice.Group), choice.N)
	if choice.Group != AnyGroup && len(chosen) == 0 && choice.N > 0 {
		return out, fmt.Errorf("%w: group %d of step %d of run %s, which has %d groups, from 0", ErrNoGroup,
			choice.Group, step, run, groupsOf(rewards))
	}
	if out.Episodes, err = v.episodes(ctx, step, chosen); err == nil {
		out.layout, err = v.Layout(ctx)
	}
	return out, err
}

func reasons(selection []schema.SelectionRow) []Reason {
	count := map[string]int{}
	for _, s := range selection {
		if !s.Kept {
			count[s.Reason]++
		}
	}
	out := make([]Reason, 0, len(count))
	for name, n := range count {
		out = append(out, Reason{name, n})
	}
	slices.SortFunc(out, func(a, b Reason) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// candidate is a trajectory that may be shown, and its kind.
type candidate struct {
	reward    *schema.RewardRow // nil where it was excluded
	selection schema.SelectionRow
	kind      string
}

// candidates joins selection and rewards, in canonical order.
func candidates(rewards []schema.RewardRow, selection []schema.SelectionRow, step, group int) []candidate {
	byID := make(map[string]*schema.RewardRow, len(rewards))
	for i, r := range rewards {
		byID[r.TrajectoryID] = &rewards[i]
	}
	var out []candidate
	for _, s := range selection {
		if group != AnyGroup && s.GroupID != schema.GroupID(step, group) {
			continue
		}
		c := candidate{reward: byID[s.TrajectoryID], selection: s}
		switch {
		case !s.Kept:
			c.kind = "2 dropped: " + s.Reason
		case c.reward != nil && c.reward.Reward > 0:
			c.kind = "0 kept positive"
		default:
			c.kind = "1 kept negative"
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Compare(a.selection.TrajectoryID,
			b.selection.TrajectoryID)
	})
	return out
}

// choose takes n candidates, one of each kind in turn, preferring the groups with the fewest chosen so far.
func choose(all []candidate, n int) []candidate {
	kinds := map[string][]candidate{}
	var order []string
	for _, c := range all {
		if kinds[c.kind] == nil {
			order = append(order, c.kind)
		}
		kinds[c.kind] = append(kinds[c.kind], c)
	}
	slices.Sort(order)
	taken := map[string]int{} // by group
	var out []candidate
	for len(out) < min(n, len(all)) {
		for _, kind := range order {
			left := kinds[kind]
			if len(left) == 0 || len(out) == n {
				continue
			}
			best := 0
			for i, c := range left {
				if taken[c.selection.GroupID] < taken[left[best].selection.GroupID] {
					best = i
				}
			}
			out = append(out, left[best])
			taken[left[best].selection.GroupID]++
			kinds[kind] = slices.Delete(slices.Clone(left), best, best+1)
		}
	}
	return out
}

// episodes collects the rows of the chosen trajectories.
func (v *Visible) episodes(ctx context.Context, step int, chosen []candidate) ([]Episode, error) {
	out := make([]Episode, len(chosen))
	at := map[string]*Episode{}
	for i, c := range chosen {
		out[i] = Episode{Reward: c.reward, Selection: c.selection}
		at[c.selection.TrajectoryID] = &out[i]
	}
	prompts, err := stepRows[schema.PromptRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	for _, p := range prompts {
		for i := range out {
			if out[i].Selection.GroupID == p.GroupID {
				out[i].Prompt = p
			}
		}
	}
	trajectories, err := stepRows[schema.TrajectoryRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	for _, t := range trajectories {
		if e := at[t.TrajectoryID]; e != nil {
			e.Trajectory = t
		}
	}
	return out, v.conversation(ctx, step, at)
}

// conversation fills in turns, tool calls, judgements and advantages.
func (v *Visible) conversation(ctx context.Context, step int, at map[string]*Episode) error {
	turns, err := whole[schema.TurnRow](ctx, v, step)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if e := at[t.TrajectoryID]; e != nil {
			e.Turns = append(e.Turns, t)
		}
	}
	calls, err := whole[schema.ToolCallRow](ctx, v, step)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if e := at[c.TrajectoryID]; e != nil {
			e.Calls = append(e.Calls, c)
		}
	}
	judged, err := stepRows[schema.JudgementRow](ctx, v, step)
	if err != nil {
		return err
	}
	for i, j := range judged {
		if e := at[j.TrajectoryID]; e != nil {
			e.Judgement = &judged[i]
		}
	}
	transitions, err := whole[schema.TransitionRow](ctx, v, step)
	if err != nil {
		return err
	}
	for _, x := range transitions {
		if e := at[x.TrajectoryID]; e != nil {
			e.Transitions = append(e.Transitions, x)
		}
	}
	for _, e := range at {
		e.sort()
	}
	batch, err := stepBatch(ctx, v, step)
	if err != nil {
		return err
	}
	for len(batch) > 0 { // the rows of a trajectory are adjacent
		id := batch[0].TrajectoryID
		n := 1
		for n < len(batch) && batch[n].TrajectoryID == id {
			n++
		}
		if e := at[id]; e != nil {
			e.Advantage, e.Advantages = advantage(batch[:n]), overlay(batch[:n], e.Turns)
		}
		batch = batch[n:]
	}
	return nil
}

// sort puts the rows of a trajectory in the order of its turns and calls.
func (e *Episode) sort() {
	slices.SortFunc(e.Turns, func(a, b schema.TurnRow) int { return cmp.Compare(a.Turn, b.Turn) })
	slices.SortFunc(e.Calls, func(a, b schema.ToolCallRow) int {
		return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Call, b.Call))
	})
	slices.SortFunc(e.Transitions, func(a, b schema.TransitionRow) int { return cmp.Compare(a.Turn, b.Turn) })
}

// advantage returns a trajectory's mean advantage before its weight, or nil if none of its tokens is trained on.
func advantage(rows []schema.BatchRow) *float64 {
	a, ok := MeanAdvantage(rows...)
	if !ok {
		return nil
	}
	if w := rows[0].Weight; w > 0 {
		a /= w
	}
	return &a
}

// Generations lists the generations of a finished step: Heads first, then its replays.
func (r *Record) Generations(ctx context.Context, run string, step int) ([]Generation, error) {
	v, err := r.WithGeneration(AllGenerations).Visible(ctx, run)
	if err != nil {
		return nil, err
	}
	out := []Generation{Heads}
	for _, g := range v.Replays(step) {
		out = append(out, Numbered(g))
	}
	return out, nil
}

// groupsOf counts the groups of a step.
func groupsOf(rewards []schema.RewardRow) int {
	groups := map[string]bool{}
	for _, r := range rewards {
		groups[r.GroupID] = true
	}
	return len(groups)
}
