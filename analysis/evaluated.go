package analysis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// ErrNoEvaluation means that the run has no evaluation at a step whose episodes are recorded.
var ErrNoEvaluation = errors.New("no evaluation with recorded episodes")

// Evaluated lists the steps whose evaluations have recorded their episodes, in order. The evaluation of the policy
// before the first step is at NoStep.
func (v *Visible) Evaluated(ctx context.Context) ([]int, error) {
	manifests, err := v.withoutHead(ctx, schema.Evaluations)
	var out []int
	for _, m := range manifests {
		if len(m.ShardsOf(schema.EvaluationTrajectories)) > 0 {
			out = append(out, placed(m))
		}
	}
	return slices.Compact(out), err
}

// EvaluationCloseups returns every episode of a step's evaluation, by problem and sample. The greedy episode of a
// problem is its last.
func (v *Visible) EvaluationCloseups(ctx context.Context, step int) ([]Closeup, error) {
	manifests, err := v.evaluationsAt(ctx, step)
	if err != nil {
		return nil, err
	}
	trajectories, err := heldRows[schema.EvaluationTrajectoryRow](ctx, v, manifests)
	if err != nil {
		return nil, err
	}
	out := make([]Closeup, len(trajectories))
	at := make(map[string]*Closeup, len(out))
	slices.SortFunc(trajectories, func(a, b schema.EvaluationTrajectoryRow) int {
		return cmp.Compare(a.TrajectoryID, b.TrajectoryID)
	})
	for i, t := range trajectories {
		out[i].Trajectory = schema.TrajectoryRow(t)
		out[i].Selection = schema.SelectionRow{GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Excluded: t.Excluded}
		at[t.TrajectoryID] = &out[i]
	}
	if err := v.fillHeld(ctx, manifests, out, at); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].sort()
		if len(out[i].Turns) > 0 {
			out[i].Tokens = sequence(out[i].Turns)
		}
	}
	return out, nil
}

// evaluationsAt returns the manifests of a step's evaluation.
func (v *Visible) evaluationsAt(ctx context.Context, step int) ([]schema.Manifest, error) {
	manifests, err := v.withoutHead(ctx, schema.Evaluations)
	if err != nil {
		return nil, err
	}
	manifests = slices.DeleteFunc(manifests, func(m schema.Manifest) bool {
		return placed(m) != step || len(m.ShardsOf(schema.EvaluationTrajectories)) == 0
	})
	if len(manifests) == 0 {
		return nil, fmt.Errorf("%w at step %d of run %s", ErrNoEvaluation, max(step, 0), v.run)
	}
	return manifests, nil
}

// fillHeld adds the rows of an evaluation's tables to its episodes.
func (v *Visible) fillHeld(ctx context.Context, manifests []schema.Manifest, all []Closeup,
	at map[string]*Closeup) error {
	prompts, err := heldRows[schema.EvaluationPromptRow](ctx, v, manifests)
	if err != nil {
		return err
	}
	problems := make(map[string]schema.PromptRow, len(prompts))
	for _, p := range prompts {
		problems[p.GroupID] = schema.PromptRow(p)
	}
	for i := range all {
		all[i].Prompt = problems[all[i].Trajectory.GroupID]
	}
	return errors.Join(
		eachHeld(ctx, v, manifests, func(r schema.EvaluationTurnRow) {
			if c := at[r.TrajectoryID]; c != nil {
				c.Turns = append(c.Turns, schema.TurnRow(r))
			}
		}),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationCallRow) {
			if c := at[r.TrajectoryID]; c != nil {
				c.Calls = append(c.Calls, schema.ToolCallRow(r))
			}
		}),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationTransitionRow) {
			if c := at[r.TrajectoryID]; c != nil {
				c.Transitions = append(c.Transitions, schema.TransitionRow(r))
			}
		}),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationRow) {
			if r.TrajectoryID == nil {
				return
			}
			if c := at[*r.TrajectoryID]; c != nil {
				c.Held = &r
			}
		}))
}

// eachHeld hands each row of a table to add.
func eachHeld[R schema.Row](ctx context.Context, v *Visible, manifests []schema.Manifest, add func(R)) error {
	rows, err := heldRows[R](ctx, v, manifests)
	for _, r := range rows {
		add(r)
	}
	return err
}

// heldRows returns the rows of R's table that manifests name. With columns, only those are read.
func heldRows[R schema.Row](ctx context.Context, v *Visible, manifests []schema.Manifest,
	columns ...string) ([]R, error) {
	pieces, err := rowsOf[R](ctx, v, shardsOf(schema.TableOf[R](), manifests), columns...)
	return slices.Concat(pieces...), err
}

// EvaluationView is an evaluation and a few of its episodes.
type EvaluationView struct {
	Run              string
	Step             int // NoStep for the policy before the first step
	Recorded, Solved int // episodes, those of greedy passes included
	Episodes         []Episode
	layout           Layout
}

// LastEvaluation selects the evaluation of the latest step.
const LastEvaluation = -2

// Evaluation reads an evaluation (of a step, NoStep or LastEvaluation) and selects episodes from it: a solved one, a
// failed one, and so on, from as many problems as possible.
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
	closeups, err := v.EvaluationCloseups(ctx, step)
	if err != nil {
		return EvaluationView{}, err
	}
	out := EvaluationView{Run: run, Step: step, Recorded: len(closeups)}
	byID := make(map[string]Episode, len(closeups))
	var all []candidate
	groups := map[string]bool{}
	for _, c := range closeups {
		groups[c.Trajectory.GroupID] = true
		byID[c.Trajectory.TrajectoryID] = c.Episode
		kind := "1 failed"
		switch {
		case c.Held == nil:
			kind = "2 excluded"
		case c.Held.Success:
			kind = "0 solved"
			out.Solved++
		}
		if choice.Group == AnyGroup || c.Trajectory.GroupID == schema.GroupID(max(step, 0), choice.Group) {
			all = append(all, candidate{selection: c.Selection, kind: kind})
		}
	}
	if choice.Group != AnyGroup && len(all) == 0 {
		return out, fmt.Errorf("%w: problem %d of the evaluation, which has %d problems, from 0", ErrNoGroup,
			choice.Group, len(groups))
	}
	for _, c := range choose(all, choice.N) {
		out.Episodes = append(out.Episodes, byID[c.selection.TrajectoryID])
	}
	out.layout, err = v.Layout(ctx)
	return out, err
}
