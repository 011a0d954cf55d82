package data

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/curation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// tally counts the answers to one task.
type tally struct{ answers, matched int32 }

// byDifficulty completes the verdicts on the candidates by the answers of the given model.
func (a PrepareData) byDifficulty(ctx context.Context, w *stage.Draft, in api.DataInput, out *api.DataPrepared) error {
	tasks, rows, err := a.Recipes.TaskRows(ctx, w.Recipe, in.Run, in.Candidates)
	if err != nil {
		return err
	}
	of, err := a.tallies(ctx, w, in.Answers)
	if err != nil {
		return err
	}
	d := w.Recipe.Data.Difficulty
	bounds := curation.Difficulty{AtLeast: d.AtLeast, AtMost: d.AtMost}
	for i := range rows {
		r := &rows[i]
		if r.Kept {
			t := of[r.Place]
			if int(t.answers) != d.Samples {
				return fmt.Errorf("%w: %s holds %d answers to task %d, want %d", commit.ErrDamaged, in.Answers.Key,
					t.answers, r.Place, d.Samples)
			}
			r.Answers, r.Matched = new(t.answers), new(t.matched)
			if v := bounds.Judge(d.Samples, int(t.matched)); v.Reason != "" {
				r.Kept, r.Reason, r.Detail = false, v.Reason, new(v.Detail)
			}
		}
		countTask(out, r.Kept, r.Reason)
	}
	if out.Kept == 0 {
		world, err := a.Recipes.World(w.Recipe)
		if err != nil {
			return err
		}
		return curation.DropsAll(len(tasks), world.Name(), out.Dropped)
	}
	candidates, err := a.Record.Read(ctx, in.Candidates)
	if err != nil {
		return err
	}
	w.Manifest.Note = candidates.Note
	delete(w.Manifest.Note, schema.NoteResult)
	w.Timing.Rows = int64(len(rows))
	return stage.Put(ctx, w, rows)
}

// tallies counts the answers by their tasks' places, one shard at a time.
func (a PrepareData) tallies(ctx context.Context, w *stage.Draft, answers schema.Ref) (map[int32]tally, error) {
	_, shards, err := a.StageShards(ctx, answers)
	if err != nil {
		return nil, err
	}
	of := map[int32]tally{}
	for i, s := range shards {
		data, err := a.Record.ReadShard(ctx, s)
		if err != nil {
			return nil, err
		}
		rows, err := schema.DecodeColumns[schema.TaskAnswerRow](data, "place", "matched")
		if err != nil {
			return nil, fmt.Errorf("read shard %s: %w", s.Key, err)
		}
		for _, r := range rows {
			t := of[r.Place]
			t.answers++
			if r.Matched {
				t.matched++
			}
			of[r.Place] = t
		}
		w.Progress.Set(i+1, len(shards))
	}
	return of, nil
}
