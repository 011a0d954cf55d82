package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// ReplayCheck is what `ropewalk replay --check --json` prints.
type ReplayCheck struct {
	Run     string         `json:"run_id"`
	Code    string         `json:"code"`      // digest of the program that checked
	RunCode []string       `json:"run_codes"` // those of other programs that had made steps
	Checked int            `json:"checked"`   // shards
	Differs int            `json:"differs"`
	Shards  []CheckedShard `json:"shards"`
}

// CheckedShard is one shard of a pure stage and how it came out when it was made again.
type CheckedShard struct {
	Step   int    `json:"step"`
	Stage  string `json:"stage"`
	Shard  int    `json:"shard"` // −1 for a stage without shards
	Digest string `json:"digest"`
	Same   bool   `json:"same"`
	Now    string `json:"now,omitempty"` // the first 16 digits, where it differs

	table schema.Table
}

// CheckedShards lists the shards that were made again; the workflow names only those that differ.
func CheckedShards(ctx context.Context, objects store.Store, c workflows.CheckState, run string) (ReplayCheck, error) {
	out := ReplayCheck{Run: run, Code: c.Code, RunCode: append([]string{}, c.Codes...), Checked: c.Shards,
		Differs: len(c.Differs), Shards: []CheckedShard{}}
	visible, err := analysis.New(objects).Originals().Visible(ctx, run)
	if err != nil {
		return out, Missing(err)
	}
	for _, stage := range stages.Pure() {
		shards, err := visible.MadeBy(ctx, stage)
		if err != nil {
			return out, err
		}
		for _, s := range shards {
			if !slices.Contains(c.Steps, s.Step) {
				continue // done since
			}
			parts, err := schema.ParseDataKey(s.Key)
			if err != nil {
				return out, fmt.Errorf("stage %s: %w", stage, err)
			}
			out.Shards = append(out.Shards, outcomeOf(c.Differs,
				CheckedShard{Step: s.Step, Stage: stage, Shard: parts.Shard, Digest: s.Digest, Same: true,
					table: s.Table}))
		}
	}
	slices.SortStableFunc(out.Shards, func(x, y CheckedShard) int { return cmp.Compare(x.Step, y.Step) })
	if len(out.Shards) != c.Shards {
		return out, fmt.Errorf("replay has made %d shards of run %s and its heads name %d: the record has changed "+
			"meanwhile", c.Shards, run, len(out.Shards))
	}
	return out, nil
}

func outcomeOf(differs []api.Different, s CheckedShard) CheckedShard {
	for _, d := range differs {
		if d.Step == s.Step && d.Stage == s.Stage && d.Shard == s.Shard &&
			(d.Table == "" || d.Table == string(s.table)) {
			s.Same, s.Now = false, d.Digest
		}
	}
	return s
}
