package evaluate

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
)

// Evaluate measures a policy on the held-out problems: with samples at a temperature, and with the most likely
// response if the recipe asks for it. It runs whole episodes. If the evaluation has shards, they have run the episodes,
// and Evaluate computes the figures of them all.
type Evaluate struct{ *stage.Worker }

// Execute commits one row for each episode, and the episodes' turns, and returns the summary. After the last evaluation
// of a run it commits the run's end, so that a reader knows that nothing comes after it.
func (a Evaluate) Execute(ctx context.Context, e *stage.Env, in api.EvaluateInput) (api.Evaluated, error) {
	out, err := a.evaluate(ctx, e, in, schema.StageEvaluate)
	if err == nil && in.Tag == api.TagFinal {
		err = failure.OwnLimit(ctx, failure.Classify(a.commitEnd(ctx, in, out.Manifest)))
	}
	return out, err
}

func (a Evaluate) commitEnd(ctx context.Context, in api.EvaluateInput, evaluated schema.Ref) error {
	m, err := a.Manifest(ctx, stage.Spec{Scope: in.Scope, Stage: schema.StageEnd, Turn: -1, Shard: -1,
		Inputs: []schema.Ref{in.Policy.Manifest, evaluated}})
	if err == nil {
		_, _, _, err = a.Record.Commit(ctx, m)
	}
	return err
}

// evaluate is the evaluation, as a stage of the given name.
func (a Evaluate) evaluate(ctx context.Context, e *stage.Env, in api.EvaluateInput, name string) (out api.Evaluated,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: name, Turn: -1, Shard: -1, Inputs: []schema.Ref{in.Policy.Manifest}}
	note := "" // key of the note by which other runs find this evaluation
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		if len(in.Parts) > 0 {
			return a.combine(ctx, w, in, &out)
		}
		if in.Step == api.InitStep {
			var shared bool
			if note, shared, err = a.share(ctx, w, in, &out); err != nil || shared {
				return err
			}
		}
		found, err := measure(ctx, w, in, 0, w.Recipe.Evaluation.Problems)
		if err != nil {
			return err
		}
		out.Summary = summarise(w, found.rows, found.excluded)
		return found.put(ctx, w)
	})
	if err == nil && note != "" && !out.Timing.Adopted {
		err = failure.OwnLimit(ctx, failure.Classify(a.noteShared(ctx, note, out.Manifest)))
	}
	return out, err
}

// summarise computes the figures of an evaluation's rows, in canonical order, and states them in the manifest.
func summarise(w *stage.Draft, rows []schema.EvaluationRow, excluded int) api.EvaluationSummary {
	schema.Sort(rows)
	out := evaluation.Summarise(evaluation.Sampled(rows), w.Recipe.Seed)
	w.Timing.Rows, w.Timing.Tokens = int64(len(rows)), out.Tokens
	w.Stats = map[string]float64{record.StatSuccess: out.Success, "greedy": out.Greedy}
	if excluded > 0 {
		w.Stats[schema.StatExcluded] = float64(excluded)
	}
	if score, ok := evaluation.Score(rows); ok {
		w.Stats[schema.StatScore] = score
	}
	if w.Recipe.Environment.Declaration().Golds {
		w.Stats[schema.StatExactMatch], w.Stats[schema.StatF1] = evaluation.Words(rows)
	}
	if rate, judged := evaluation.JudgedRate(rows, w.Recipe.Seed); judged {
		w.Stats[schema.StatJudged] = rate.Success
	}
	return out
}

// combine computes the figures of an evaluation from the rows that its shards have committed.
func (a Evaluate) combine(ctx context.Context, w *stage.Draft, in api.EvaluateInput, out *api.Evaluated) error {
	rows, err := record.Read[schema.EvaluationRow](ctx, a.Records, in.Parts...)
	if err != nil {
		return err
	}
	excluded := 0
	for _, ref := range in.Parts {
		m, err := a.Record.Read(ctx, ref)
		if err != nil {
			return err
		}
		excluded += int(m.Stats[schema.StatExcluded])
	}
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.ProblemID] = true
	}
	n, err := a.Recipes.HeldOutTasks(ctx, w.Recipe)
	if err != nil {
		return err
	}
	// A problem of which every episode broke has no row.
	if len(seen) > n || len(seen) < n && excluded == 0 {
		return fmt.Errorf("%w: the shards of the evaluation hold %d problems, want %d", commit.ErrDamaged, len(seen), n)
	}
	w.Manifest.Parts = in.Parts
	out.Summary = summarise(w, rows, excluded)
	return nil
}

// measure runs the episodes of n held-out problems, from one on, with the policy.
func measure(ctx context.Context, w *stage.Draft, in api.EvaluateInput, from, n int) (*heldOut, error) {
	m, err := newMeasurement(ctx, w, in, from, n)
	if err != nil {
		return nil, err
	}
	defer m.close()
	sampler, err := w.Sampler(ctx, in.Scope, stage.Evaluating(w.Recipe))
	if err != nil {
		return nil, err
	}
	v := stage.Version(in.Policy)
	v.Positions = in.Positions
	err = sampler.UseWith(ctx, v, m.pages.Version(), func(s policy.Sampler) error {
		m.pages.With(s)
		return m.run(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	files, err := w.Worker.Recipes.WorldCode(ctx, w.Recipe)
	if err != nil {
		return nil, err
	}
	if err := w.NoteCode(ctx, in.Scope, schema.NoteEnvironmentCode, files); err != nil {
		return nil, err
	}
	return m.found, judge(ctx, w, in, m.found)
}

// EvaluateInitial is Evaluate for the policy before the warm start: a stage of its own, so that no reader takes its
// rows for those of the first policy.
type EvaluateInitial struct{ *stage.Worker }

// Execute commits one row for each episode, and the episodes' turns, and returns the summary.
func (a EvaluateInitial) Execute(ctx context.Context, e *stage.Env, in api.EvaluateInput) (api.Evaluated, error) {
	return Evaluate(a).evaluate(ctx, e, in, schema.StageInitial)
}

// EvaluateFactual is Evaluate for a run's own policy next to the policy of a replay: another stage, because a
// generation has one evaluation.
type EvaluateFactual struct{ *stage.Worker }

// Execute commits one row for each episode, and the episodes' turns, and returns the summary.
func (a EvaluateFactual) Execute(ctx context.Context, e *stage.Env, in api.EvaluateInput) (api.Evaluated, error) {
	return Evaluate(a).evaluate(ctx, e, in, schema.StageFactual)
}

// EvaluateShard runs the episodes of some held-out problems of a large evaluation. A killed worker loses at most the
// shards that it was running.
type EvaluateShard struct{ *stage.Worker }

// Execute commits the shard's rows. Its episodes are those that one activity for the whole evaluation would run.
func (a EvaluateShard) Execute(ctx context.Context, e *stage.Env, in api.EvaluateShardInput) (out api.EvaluatedShard,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageEvaluate, Turn: -1, Shard: in.Shard,
		Inputs: []schema.Ref{in.Policy.Manifest}}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		found, err := measure(ctx, w, in.EvaluateInput, in.First, in.Problems)
		if err != nil {
			return err
		}
		out.Episodes = len(found.rows)
		if found.excluded > 0 {
			w.Stats = map[string]float64{schema.StatExcluded: float64(found.excluded)}
		}
		for _, r := range found.rows {
			w.Timing.Tokens += int64(*r.ResponseTokens)
			if r.Greedy {
				continue
			}
			out.Sampled++
			if r.Success {
				out.Solved++
			}
		}
		w.Timing.Rows = int64(len(found.rows))
		return found.put(ctx, w)
	})
	return out, err
}
