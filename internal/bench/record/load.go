package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/folder"
)

// turns are the turns of a run.
type turns struct {
	run    string
	shards [][]schema.TurnRow
	rows   []schema.TurnRow // of all shards
}

// set is what one file, or each of several files, holds.
type set struct {
	name  string
	files [][]schema.TurnRow
}

func (t turns) sets() []set {
	return []set{{"one file", [][]schema.TurnRow{t.rows}}, {"per shard", t.shards}}
}

func (t turns) tokens() int {
	n := 0
	for _, r := range t.rows {
		n += len(r.TokenIDs)
	}
	return n
}

// load reads a run's turns. Without a name it takes the run that was entered last.
func load(ctx context.Context, bucket, run string) (turns, error) {
	record := analysis.New(folder.New(bucket))
	if run == "" {
		runs, err := record.Runs(ctx)
		if err != nil {
			return turns{}, err
		}
		if len(runs) == 0 {
			return turns{}, fmt.Errorf("%s holds no run whose turns could be used: train one (make run), or name a "+
				"bucket by -bucket", bucket)
		}
		run = runs[0].Run
	}
	visible, err := record.Visible(ctx, run)
	if err != nil {
		return turns{}, err
	}
	shards, err := visible.Shards(ctx, schema.Turns)
	if err != nil {
		return turns{}, err
	}
	out := turns{run: run}
	for _, s := range shards {
		data, err := visible.Bytes(ctx, s)
		if err != nil {
			return turns{}, err
		}
		rows, err := schema.Decode[schema.TurnRow](data)
		if err != nil {
			return turns{}, fmt.Errorf("%s: %w", s.Key, err)
		}
		out.shards = append(out.shards, rows)
		out.rows = append(out.rows, rows...)
	}
	if len(out.rows) == 0 {
		return turns{}, errors.New("run " + run + " has no finished step, so it has no turns")
	}
	schema.Sort(out.rows)
	return out, nil
}
