package activities

import (
	"bytes"
	"context"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/gsm8k"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// ImportTrajectories turns an uploaded file of other systems' trajectories into committed prompts,
// turns and trajectories. Nobody knows the probabilities with which they were written: those are null.
type ImportTrajectories struct{ *Deps }

// shardGroups is how many problems one imported shard holds.
const shardGroups = 128

// Execute commits the shards as turn 0 of the rollout stage, each with its three tables.
func (a ImportTrajectories) Execute(ctx context.Context, in wire.ImportInput) (wire.Imported, error) {
	out := wire.Imported{}
	s := spec{scope: in.Scope, stage: wire.StageImport, turn: -1, shard: -1}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		tables, err := a.rows(ctx, in)
		if err != nil {
			return err
		}
		for first := 0; first < len(tables.prompts); first += shardGroups {
			shard, err := a.shard(ctx, in.Scope, len(out.Shards), tables.groups(in.Scope.Step, first, first+shardGroups))
			if err != nil {
				return err
			}
			out.Shards = append(out.Shards, shard)
			out.Calls += shard.Calls
			w.progress.set(min(first+shardGroups, len(tables.prompts)), len(tables.prompts))
		}
		out.Trajectories = len(tables.trajectories)
		w.manifest.Note = map[string]string{"source": in.Source, "source_digest": in.Digest}
		w.timing.Rows = int64(out.Trajectories)
		return nil
	})
	return out, err
}

// imported are rows on their way into shards, each table in the record's order.
type imported struct {
	prompts      []schema.PromptRow
	turns        []schema.TurnRow
	trajectories []schema.TrajectoryRow
}

// rows reads the uploaded file into rows.
func (a ImportTrajectories) rows(ctx context.Context, in wire.ImportInput) (imported, error) {
	if in.Format == wire.FormatOpenAI {
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

// groups returns the rows of groups first…last−1.
func (t imported) groups(step, first, last int) imported {
	from, to := schema.GroupID(step, first), schema.GroupID(step, last)
	within := func(group string) bool { return from <= group && group < to }
	var out imported
	for _, r := range t.prompts {
		if within(r.GroupID) {
			out.prompts = append(out.prompts, r)
		}
	}
	for _, r := range t.turns {
		if within(r.GroupID) {
			out.turns = append(out.turns, r)
		}
	}
	for _, r := range t.trajectories {
		if within(r.GroupID) {
			out.trajectories = append(out.trajectories, r)
		}
	}
	return out
}

// shard commits one shard's prompts, turns and trajectories under one manifest.
func (a ImportTrajectories) shard(ctx context.Context, scope wire.Scope, number int, tables imported) (wire.ImportedShard, error) {
	m, err := a.manifest(ctx, spec{scope: scope, stage: wire.StageRollout, turn: 0, shard: number})
	if err != nil {
		return wire.ImportedShard{}, err
	}
	w := &draft{deps: a.Deps, place: m.Place, manifest: m}
	if err := put(ctx, w, tables.prompts); err != nil {
		return wire.ImportedShard{}, err
	}
	if err := put(ctx, w, tables.turns); err != nil {
		return wire.ImportedShard{}, err
	}
	if err := put(ctx, w, tables.trajectories); err != nil {
		return wire.ImportedShard{}, err
	}
	_, ref, _, err := a.Record.Commit(ctx, w.manifest)
	out := wire.ImportedShard{Manifest: ref}
	for _, t := range tables.turns {
		out.Calls += int(t.ToolCalls)
	}
	return out, err
}

// source reads the uploaded file. A bad line is the uploader's to mend.
func (d *Deps) source(ctx context.Context, key, digest string) ([]gsm8k.Item, error) {
	data, err := d.Record.ReadBlob(ctx, key, digest)
	if err != nil {
		return nil, err
	}
	items, err := gsm8k.Read(bytes.NewReader(data))
	if err != nil {
		return nil, refuse(wire.FailBadInput, "%s: %v", key, err)
	}
	return items, nil
}

// importedCalls runs the calculations of imported turns; see ExecuteToolCalls.
func (a ExecuteToolCalls) importedCalls(ctx context.Context, w *draft, in wire.ToolsInput, recipe *recipes.Recipe) ([]schema.ToolCallRow, []schema.TimingRow, error) {
	turns, err := read[schema.TurnRow](ctx, a.Deps, in.Turns...)
	if err != nil {
		return nil, nil, err
	}
	var rows []schema.ToolCallRow
	var calls []sandbox.Call
	for _, t := range turns {
		for i, c := range gsm8k.ReadCalls(t.Response, int(t.ToolCalls)) {
			tool := c.Tool()
			rows = append(rows, schema.ToolCallRow{
				GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Turn: t.Turn, Call: int32(i),
				Name: tool.Name, Arguments: tool.Arguments, Code: tool.Code, Stdin: tool.Stdin,
			})
			calls = append(calls, sandbox.Call{Code: tool.Code, Stdin: tool.Stdin, Limits: callLimits(recipe.Sandbox)})
		}
	}
	outcomes, err := a.runCalls(ctx, w, calls)
	if err != nil {
		return nil, nil, err
	}
	var measured []schema.TimingRow
	for i, o := range outcomes {
		row := &rows[i]
		if o.Broken != nil {
			why := rollout.Reason("sandbox", o.Broken.Error())
			row.Excluded = &why
			continue
		}
		row.Status, row.ExitCode, row.Stdout, row.Stderr, row.Value = string(o.Status), int32(o.ExitCode), o.Stdout, o.Stderr, o.Value
		measured = append(measured, callTiming(in, row.TrajectoryID, int(row.Turn), int(row.Call), o.Timing))
	}
	return rows, measured, nil
}
