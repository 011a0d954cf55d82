package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	t, err := v.tables(ctx, step)
	if err != nil {
		return StepView{}, err
	}
	updates, err := stepRows[schema.UpdateRow](ctx, v, step)
	if err != nil {
		return StepView{}, err
	}
	out := StepView{Run: run, Gen: r.gen, Summary: summarise(step, t.rewards, t.selection, updates),
		Dropped: reasons(t.selection), Judged: judgements(t.judgements)}
	apart, err := v.mismatches(ctx)
	if err != nil {
		return StepView{}, err
	}
	out.Summary.Mismatch = apart[step]
	all := slices.DeleteFunc(t.episodes(), func(e Episode) bool { return e.Selection.TrajectoryID == "" })
	if out.Episodes = choose(all, step, choice, kindInStep); choice.Group != AnyGroup && len(out.Episodes) == 0 {
		return out, fmt.Errorf("%w: group %d of step %d of run %s, which has %d groups, from 0", ErrNoGroup,
			choice.Group, step, run, out.Summary.KeptGroups+out.Summary.DroppedGroups)
	}
	out.layout, err = v.Layout(ctx)
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
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, Reason{name, count[name]})
	}
	return out
}

// kindInStep is the kind of a step's trajectory. Kinds are shown in the order of their names.
func kindInStep(e Episode) string {
	switch {
	case !e.Selection.Kept:
		return "2 dropped: " + e.Selection.Reason
	case e.Reward != nil && e.Reward.Reward > 0:
		return "0 kept positive"
	}
	return "1 kept negative"
}

// kindInEvaluation is the kind of an evaluation's episode.
func kindInEvaluation(e Episode) string {
	switch {
	case e.Held == nil:
		return "2 excluded"
	case e.Held.Success:
		return "0 solved"
	}
	return "1 failed"
}

// choose takes episodes, one of each kind in turn, preferring the groups with the fewest chosen so far.
func choose(all []Episode, step int, choice Choice, kindOf func(Episode) string) []Episode {
	kinds := map[string][]Episode{}
	var order []string
	left := 0
	for _, e := range all {
		if choice.Group != AnyGroup && e.Selection.GroupID != schema.GroupID(step, choice.Group) {
			continue
		}
		kind := kindOf(e)
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], e)
		left++
	}
	slices.Sort(order)
	taken := map[string]int{} // by group
	var out []Episode
	for len(out) < min(choice.N, left) {
		for _, kind := range order {
			of := kinds[kind]
			if len(of) == 0 || len(out) == choice.N {
				continue
			}
			best := 0
			for i, e := range of {
				if taken[e.Selection.GroupID] < taken[of[best].Selection.GroupID] {
					best = i
				}
			}
			out = append(out, of[best])
			taken[of[best].Selection.GroupID]++
			kinds[kind] = slices.Delete(of, best, best+1)
		}
	}
	return out
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

// EvaluationView is an evaluation and a few of its episodes.
type EvaluationView struct {
	Run              string
	Step             int // 0 or NoStep for the policy before the first step
	Recorded, Solved int // episodes, greedy passes included
	Episodes         []Episode
	layout           Layout
}

// LastEvaluation selects the evaluation of the latest step.
const LastEvaluation = -2

// Evaluation reads an evaluation (after a step, LastEvaluation, or 0 for the one before the first step) and selects
// episodes from it: a solved one, a failed one, and so on, from as many problems as possible.
func (r *Record) Evaluation(ctx context.Context, run string, step int, choice Choice) (EvaluationView, error) {
	v, err := r.Visible(ctx, run)
	if err != nil {
		return EvaluationView{}, err
	}
	if step == LastEvaluation {
		all, err := v.Evaluated(ctx)
		if err != nil {
			return EvaluationView{}, err
		}
		if len(all) == 0 {
			return EvaluationView{}, fmt.Errorf("%w in run %s", ErrNoEvaluation, run)
		}
		step = all[len(all)-1]
	}
	t, err := v.evaluationTables(ctx, step)
	if err != nil {
		return EvaluationView{}, err
	}
	all := t.episodes()
	out := EvaluationView{Run: run, Step: step, Recorded: len(all)}
	groups := map[string]bool{}
	for _, e := range all {
		groups[e.Selection.GroupID] = true
		if e.Held != nil && e.Held.Success {
			out.Solved++
		}
	}
	out.Episodes = choose(all, max(step, 0), choice, kindInEvaluation)
	if choice.Group != AnyGroup && len(out.Episodes) == 0 {
		return out, fmt.Errorf("%w: problem %d of the evaluation, which has %d problems, from 0", ErrNoGroup,
			choice.Group, len(groups))
	}
	out.layout, err = v.Layout(ctx)
	return out, err
}
