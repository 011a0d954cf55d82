package analysis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// stepTables holds rows of one step, or of its evaluation, by table.
type stepTables struct {
	trajectories []schema.TrajectoryRow
	prompts      []schema.PromptRow
	turns        []schema.TurnRow
	calls        []schema.ToolCallRow
	transitions  []schema.TransitionRow
	rewards      []schema.RewardRow
	selection    []schema.SelectionRow
	judgements   []schema.JudgementRow
	branches     []schema.BranchRow
	outputs      []schema.TokenOutputsRow
	batch        []schema.BatchRow
	held         []schema.EvaluationRow
}

// loader reads tables side by side, since each takes several round trips to a store.
type loader struct {
	rescue.Group
	ctx  context.Context
	view *Visible
	step int
}

func (v *Visible) loader(ctx context.Context, step int) loader {
	g, ctx := rescue.WithContext(ctx)
	return loader{g, ctx, v, step}
}

// load reads columns of the step's rows of R's table; all of them if none is named.
func load[R schema.Row](l loader, into *[]R, columns ...string) {
	l.Go(func() (err error) {
		*into, err = stepRows[R](l.ctx, l.view, l.step, columns...)
		return err
	})
}

// tables reads what was recorded of the trajectories of a finished step, without the outputs of other models. The
// samples of a tree share turns, which the record holds once (schema.Inherit); each trajectory gets all of its own.
func (v *Visible) tables(ctx context.Context, step int) (t stepTables, err error) {
	l := v.loader(ctx, step)
	load(l, &t.trajectories)
	load(l, &t.prompts)
	load(l, &t.turns)
	load(l, &t.calls)
	load(l, &t.transitions)
	load(l, &t.rewards)
	load(l, &t.selection)
	load(l, &t.judgements)
	load(l, &t.branches)
	l.Go(func() (err error) {
		t.batch, err = stepBatch(l.ctx, v, step)
		return err
	})
	err = l.Wait()
	t.turns, t.calls = schema.Inherit(t.turns, t.branches), schema.Inherit(t.calls, t.branches)
	t.transitions = schema.Inherit(t.transitions, t.branches)
	return t, err
}

// The columns that a list of trajectories shows. What an import kept of its source, which may be large, is not among
// them.
var (
	trajectoryColumns = []string{"group_id", "trajectory_id", "problem_id", "level", "source", "turns", "tool_calls",
		"tool_errors", "tokens", "response_tokens", "finish", "final_answer", "has_answer", "gold", "text", "excluded"}
	rewardColumns = []string{"group_id", "trajectory_id", "reward", "outcome", "success", "verdict"}
	promptColumns = []string{"group_id", "problem"}
	callColumns   = []string{"trajectory_id", "turn", "call", "status"}
)

// Outcomes returns every trajectory of a finished step, also of skipped shards, in canonical order, with what a list of
// trajectories shows: rewards, selection, and some columns of the trajectory, its prompt and its calls. With held it
// returns the episodes of the step's evaluation.
func (v *Visible) Outcomes(ctx context.Context, step int, held bool) ([]Episode, error) {
	var t stepTables
	if held {
		manifests, err := v.evaluationsAt(ctx, step)
		if err != nil {
			return nil, err
		}
		t, err = v.evaluationOutcomes(ctx, manifests, false)
		return t.episodes(), err
	}
	l := v.loader(ctx, step)
	load(l, &t.trajectories, trajectoryColumns...)
	load(l, &t.rewards, rewardColumns...)
	load(l, &t.selection)
	load(l, &t.prompts, promptColumns...)
	load(l, &t.calls, callColumns...)
	err := l.Wait()
	return t.episodes(), err
}

// evaluationOutcomes reads the tables of a step's evaluation of which a list of episodes shows something; all columns
// of them, or only those that it shows. An episode has no selection; the rows here say what broke it.
func (v *Visible) evaluationOutcomes(ctx context.Context, manifests []schema.Manifest, all bool) (t stepTables,
	err error) {
	columns := func(names []string) []string {
		if all {
			return nil
		}
		return names
	}
	err = errors.Join(
		eachHeld(ctx, v, manifests, func(r schema.EvaluationTrajectoryRow) {
			t.trajectories = append(t.trajectories, schema.TrajectoryRow(r))
			t.selection = append(t.selection, schema.SelectionRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID,
				Excluded: r.Excluded})
		}, columns(trajectoryColumns)...),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationPromptRow) {
			t.prompts = append(t.prompts, schema.PromptRow(r))
		}, columns(promptColumns)...),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationCallRow) {
			t.calls = append(t.calls, schema.ToolCallRow(r))
		}, columns(callColumns)...),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationRow) { t.held = append(t.held, r) }))
	return t, err
}

// evaluationTables reads what was recorded of a step's evaluation.
func (v *Visible) evaluationTables(ctx context.Context, step int) (t stepTables, err error) {
	manifests, err := v.evaluationsAt(ctx, step)
	if err != nil {
		return t, err
	}
	if t, err = v.evaluationOutcomes(ctx, manifests, true); err != nil {
		return t, err
	}
	err = errors.Join(
		eachHeld(ctx, v, manifests, func(r schema.EvaluationTurnRow) { t.turns = append(t.turns, schema.TurnRow(r)) }),
		eachHeld(ctx, v, manifests, func(r schema.EvaluationTransitionRow) {
			t.transitions = append(t.transitions, schema.TransitionRow(r))
		}))
	return t, err
}

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

// evaluationsAt returns the manifests of a step's evaluation. Step 0 is the one before the first step.
func (v *Visible) evaluationsAt(ctx context.Context, step int) ([]schema.Manifest, error) {
	if step == 0 {
		step = NoStep
	}
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

// eachHeld hands each row of R's table that manifests name to add. With columns, only those are read.
func eachHeld[R schema.Row](ctx context.Context, v *Visible, manifests []schema.Manifest, add func(R),
	columns ...string) error {
	rows, err := rowsOf[R](ctx, v.record, shardsOf(schema.TableOf[R](), manifests), columns...)
	for _, r := range rows {
		add(r)
	}
	return err
}
