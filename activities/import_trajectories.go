package activities

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/env/gsm8k"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// ImportTrajectories turns an uploaded file of other systems' trajectories into committed prompts, turns and
// trajectories. The probabilities of their tokens are unknown and therefore null.
type ImportTrajectories struct{ *Deps }

// shardGroups is the number of problems in one imported shard.
const shardGroups = 128

// Execute commits the shards as turn 0 of the rollout stage, each with its three tables. It fails for good if the run
// id already holds the import of another file.
func (a ImportTrajectories) Execute(ctx context.Context, in api.ImportInput) (api.Imported, error) {
	out := api.Imported{}
	s := spec{scope: in.Scope, stage: api.StageImport, turn: -1, shard: -1}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		tables, err := a.rows(ctx, in)
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
			w.progress.set(i+1, len(shards))
		}
		w.manifest.Note = map[string]string{schema.NoteSource: in.Source, schema.NoteSourceDigest: in.Digest}
		w.timing.Rows = int64(out.Trajectories)
		return nil
	})
	if err == nil && out.Adopted {
		err = classify(a.sameFile(ctx, in, out.Manifest))
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
		return refuse(api.FailBadInput,
			"run_id: run %s holds the import of another file (SHA-256 %s, this one's is %s); choose another run id",
			in.Run, there, in.Digest)
	}
	return nil
}

// imported holds the rows of an import before they are split into shards, each table in the record's order.
type imported struct {
	prompts      []schema.PromptRow
	turns        []schema.TurnRow
	trajectories []schema.TrajectoryRow
}

// rows converts the uploaded file to rows.
func (a ImportTrajectories) rows(ctx context.Context, in api.ImportInput) (imported, error) {
	if in.Format == api.FormatOpenAI {
		return a.conversations(ctx, in)
	}
	items, err := a.source(ctx, in.Source, in.Digest)
	if err != nil {
		return imported{}, err
	}
	t, err := gsm8k.Rows(in.Scope.Step, items, a.tokens.Encode)
	if err != nil {
		return imported{}, err
	}
	for i := range t.Trajectories {
		t.Trajectories[i].Reference = &t.Correct[i]
	}
	return imported{t.Prompts, t.Turns, t.Trajectories}, nil
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
	m, err := a.manifest(ctx, spec{scope: scope, stage: api.StageRollout, turn: 0, shard: number})
	if err != nil {
		return api.ImportedShard{}, err
	}
	w := &draft{deps: a.Deps, place: m.Place, manifest: m}
	if err := put(ctx, w, tables.prompts); err != nil {
		return api.ImportedShard{}, err
	}
	if err := put(ctx, w, tables.turns); err != nil {
		return api.ImportedShard{}, err
	}
	if err := put(ctx, w, asImported(tables.trajectories)); err != nil {
		return api.ImportedShard{}, err
	}
	committed, ref, adopted, err := a.Record.Commit(ctx, w.manifest)
	if err != nil {
		return api.ImportedShard{}, err
	}
	// An import of another file may have been killed before its last shard.
	if adopted && !sameRows(committed, w.manifest) {
		return api.ImportedShard{}, refuse(api.FailBadInput,
			"run_id: run %s holds shard %d of another file's import; choose another run id", scope.Run, number)
	}
	out := api.ImportedShard{Manifest: ref}
	for _, t := range tables.turns {
		out.Calls += int(t.ToolCalls)
	}
	return out, nil
}

// sameRows reports whether two manifests of an imported shard hold the same rows. Earlier versions put the trajectories
// into the table that the stage assemble writes too; those manifests are compared by their other tables.
func sameRows(committed, made schema.Manifest) bool {
	if len(committed.ShardsOf(schema.Trajectories)) == 0 {
		return slices.Equal(committed.Shards, made.Shards)
	}
	for _, table := range []schema.Table{schema.Prompts, schema.Turns} {
		if !slices.Equal(committed.ShardsOf(table), made.ShardsOf(table)) {
			return false
		}
	}
	return true
}

// asImported returns trajectories as rows of the table imported.
func asImported(rows []schema.TrajectoryRow) []schema.ImportedRow {
	out := make([]schema.ImportedRow, len(rows))
	for i, r := range rows {
		out[i] = schema.ImportedRow(r)
	}
	return out
}

// importedTrajectories reads the trajectories that an import committed with its turns.
func (r records) importedTrajectories(ctx context.Context, past []schema.Manifest) ([]schema.TrajectoryRow, error) {
	turns := ofStage(past, api.StageRollout)
	rows, err := commit.Rows[schema.ImportedRow](ctx, r.Record, turns...)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 { // an earlier version made the import
		return commit.Rows[schema.TrajectoryRow](ctx, r.Record, turns...)
	}
	out := make([]schema.TrajectoryRow, len(rows))
	for i, row := range rows {
		out[i] = schema.TrajectoryRow(row)
	}
	return out, nil
}

// source reads the uploaded file. A bad line is the uploader's to fix.
func (r records) source(ctx context.Context, key, digest string) ([]gsm8k.Item, error) {
	data, err := r.Record.ReadBlob(ctx, key, digest)
	if err != nil {
		return nil, err
	}
	items, err := gsm8k.Read(bytes.NewReader(data))
	if err != nil {
		return nil, refuse(api.FailBadInput, "%s: %v", key, err)
	}
	return items, nil
}

// importedCalls runs the calculations of imported turns; see ExecuteToolCalls.
func (a ExecuteToolCalls) importedCalls(ctx context.Context, w *draft, in api.ToolsInput,
	recipe *recipes.Recipe) ([]schema.ToolCallRow, []schema.TimingRow, error) {
	turns, err := pastRows[schema.TurnRow](ctx, a.records, in.Past, api.StageRollout)
	if err != nil {
		return nil, nil, err
	}
	python := tools.NewPython(a.Sandbox, callLimits(recipe.Sandbox))
	var rows []schema.ToolCallRow
	var calls []tool.Call
	for _, t := range turns {
		for i, c := range gsm8k.ReadCalls(t.Response, int(t.ToolCalls)) {
			called := c.Tool()
			key, err := importedKey(in.Scope, t, i)
			if err != nil {
				return nil, nil, err
			}
			rows = append(rows, schema.ToolCallRow{
				GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Turn: t.Turn, Call: int32(i),
				Name: called.Name, Arguments: called.Arguments, Code: called.Code, Stdin: called.Stdin,
			})
			calls = append(calls, tool.Call{Key: key, Tool: python.Spec().Name,
				Name: called.Name, Arguments: tools.PythonArguments(called.Code, called.Stdin)})
		}
	}
	outcomes, err := tool.Toolbox{python}.RunEach(ctx, calls, func(done int) { w.progress.set(done, len(calls)) })
	if err != nil {
		return nil, nil, fmt.Errorf("run tool calls: %w", err)
	}
	var measured []schema.TimingRow
	for i, o := range outcomes {
		row := &rows[i]
		if o.Broken != nil {
			why := rollout.Reason(python.Spec().BlameOn(), o.Broken.Error())
			row.Excluded = &why
			continue
		}
		row.Status, row.ExitCode, row.Stdout, row.Stderr, row.Value = string(o.Status), int32(o.ExitCode), o.Stdout,
			o.Stderr, o.Value
		measured = append(measured, callTiming(ctx, in, row.TrajectoryID, int(row.Turn), int(row.Call), o.Timing,
			time.Now()))
	}
	return rows, measured, nil
}
