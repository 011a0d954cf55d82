package data

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ImportTrajectories turns an uploaded file of other systems' trajectories into committed prompts, turns and
// trajectories. The probabilities of their tokens are unknown and therefore null.
type ImportTrajectories struct{ *stage.Worker }

// shardGroups is the number of problems in one imported shard.
const shardGroups = 128

// Execute commits the shards as turn 0 of the rollout stage, each with its three tables. It fails for good if the run
// id already holds the import of another file.
func (a ImportTrajectories) Execute(ctx context.Context, e *stage.Env, in api.ImportInput) (out api.Imported,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageImport, Turn: -1, Shard: -1}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		tables, err := a.conversations(ctx, in)
		if err != nil {
			return err
		}
		shards, err := tables.shards()
		if err != nil {
			return err
		}
		for i, rows := range shards {
			shard, err := a.shard(ctx, in.Scope, i, rows)
			if err != nil {
				return err
			}
			out.Shards = append(out.Shards, shard)
			out.Calls += shard.Calls
			out.Trajectories += len(rows.trajectories)
			w.Progress.Set(i+1, len(shards))
		}
		w.Manifest.Note = map[string]string{schema.NoteSource: in.Source, schema.NoteSourceDigest: in.Digest}
		w.Timing.Rows = int64(out.Trajectories)
		return nil
	})
	if err == nil && out.Adopted {
		err = failure.Classify(a.sameFile(ctx, in, out.Manifest))
	}
	return out, err
}

// sameFile refuses a file that differs from the one whose import is committed.
func (a ImportTrajectories) sameFile(ctx context.Context, in api.ImportInput, committed schema.Ref) error {
	m, err := a.Record.Read(ctx, committed)
	if err != nil {
		return err
	}
	if there := m.Note[schema.NoteSourceDigest]; there != in.Digest {
		return badinput.Errorf("run_id: run %s holds the import of another file (SHA-256 %s, this one's is %s); "+
			"choose another run id", in.Run, there, in.Digest)
	}
	return nil
}

// imported holds the rows of an import before they are split into shards, each table in the record's order.
type imported struct {
	prompts      []schema.PromptRow
	turns        []schema.TurnRow
	trajectories []schema.TrajectoryRow
}

// shards cuts the rows into shards of shardGroups groups. It compares the numbers of groups and not their text: as
// text, the bound after the last group sorts before the last group.
func (t imported) shards() ([]imported, error) {
	shards := make([]imported, (len(t.prompts)+shardGroups-1)/shardGroups)
	at := func(group string) (*imported, error) {
		_, n, err := schema.ParseGroupID(group)
		if err != nil {
			return nil, err
		}
		if n >= len(t.prompts) {
			return nil, fmt.Errorf("group %s: there are %d prompts, so there is no such group", group, len(t.prompts))
		}
		return &shards[n/shardGroups], nil
	}
	for _, r := range t.prompts {
		s, err := at(r.GroupID)
		if err != nil {
			return nil, err
		}
		s.prompts = append(s.prompts, r)
	}
	for _, r := range t.turns {
		s, err := at(r.GroupID)
		if err != nil {
			return nil, err
		}
		s.turns = append(s.turns, r)
	}
	for _, r := range t.trajectories {
		s, err := at(r.GroupID)
		if err != nil {
			return nil, err
		}
		s.trajectories = append(s.trajectories, r)
	}
	return shards, nil
}

// shard commits one shard's prompts, turns and trajectories under one manifest.
func (a ImportTrajectories) shard(ctx context.Context, scope api.Scope, number int,
	tables imported) (api.ImportedShard, error) {
	m, err := a.Manifest(ctx, stage.Spec{Scope: scope, Stage: schema.StageRollout, Turn: 0, Shard: number})
	if err != nil {
		return api.ImportedShard{}, err
	}
	w := &stage.Draft{Worker: a.Worker, Place: m.Place, Manifest: m}
	if err := stage.Put(ctx, w, tables.prompts); err != nil {
		return api.ImportedShard{}, err
	}
	if err := stage.Put(ctx, w, tables.turns); err != nil {
		return api.ImportedShard{}, err
	}
	if err := stage.Put(ctx, w, asImported(tables.trajectories)); err != nil {
		return api.ImportedShard{}, err
	}
	committed, ref, adopted, err := a.Record.Commit(ctx, w.Manifest)
	if err != nil {
		return api.ImportedShard{}, err
	}
	// An import of another file may have been killed before its last shard.
	if adopted && !slices.Equal(committed.Shards, w.Manifest.Shards) {
		return api.ImportedShard{}, badinput.Errorf("run_id: run %s holds shard %d of another file's import; choose "+
			"another run id", scope.Run, number)
	}
	out := api.ImportedShard{Manifest: ref}
	for _, t := range tables.turns {
		out.Calls += int(t.ToolCalls)
	}
	return out, nil
}

// asImported returns trajectories as rows of the table imported.
func asImported(rows []schema.TrajectoryRow) []schema.ImportedRow {
	out := make([]schema.ImportedRow, len(rows))
	for i, r := range rows {
		out[i] = schema.ImportedRow(r)
	}
	return out
}

// conversations reads an uploaded file in OpenAI's chat format. A bad item is the uploader's to fix.
func (a ImportTrajectories) conversations(ctx context.Context, in api.ImportInput) (imported, error) {
	data, err := a.Record.ReadBlob(ctx, in.Source, in.Digest)
	if err != nil {
		return imported{}, err
	}
	tasks, err := openai.Read(data)
	if err != nil {
		return imported{}, badinput.Errorf("%s: %v", in.Source, err)
	}
	t := openai.Rows(in.Scope.Step, tasks, a.Recipes.Tokens.Encode)
	return imported{t.Prompts, t.Turns, t.Trajectories}, nil
}
