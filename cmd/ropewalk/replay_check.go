package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// checkReport is what `ropewalk replay --check --json` prints.
type checkReport struct {
	Run     string         `json:"run_id"`
	Code    string         `json:"code"`      // digest of the program that checked
	RunCode []string       `json:"run_codes"` // those of other programs that had made steps
	Checked int            `json:"checked"`   // shards
	Differs int            `json:"differs"`
	Shards  []checkedShard `json:"shards"`
}

// checkedShard is one shard of a pure stage and how it came out when it was made again.
type checkedShard struct {
	Step   int    `json:"step"`
	Stage  string `json:"stage"`
	Shard  int    `json:"shard"` // −1 for a stage without shards
	Digest string `json:"digest"`
	Same   bool   `json:"same"`
	Now    string `json:"now,omitempty"` // the first 16 digits, where it differs

	table schema.Table
}

// checkedTables are those of the pure stages.
var checkedTables = []struct {
	stage string
	table schema.Table
}{
	{wire.StageReward, schema.Rewards}, {wire.StageResample, schema.Selection}, {wire.StageAdvantage, schema.Batch},
	{wire.StageBuffer, schema.Replay}, {wire.StageBuffer, schema.Baselines}, {wire.StageBuffer, schema.ReplayBatch},
}

func (a *app) checkReplay(ctx context.Context, run string, asJSON bool) error {
	s, err := a.join(ctx, needServers)
	if err != nil {
		return err
	}
	defer s.close()
	id := fmt.Sprintf("%s/replay/check/%s", run, time.Now().UTC().Format("20060102-150405.000"))
	result, err := a.executeReplay(ctx, s, id, "check the pure stages of "+run, workflows.ReplayStageInput{Run: run, Check: true})
	if err != nil {
		return err
	}
	report, err := checkedShards(ctx, s.store, *result.Check, run)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(report)
	} else {
		err = a.printCheck(report)
	}
	if err == nil && report.Differs > 0 {
		return silentError{exitFailed}
	}
	return err
}

// checkedShards lists the shards that were made again; the workflow names only those that differ.
func checkedShards(ctx context.Context, objects store.Store, c workflows.CheckState, run string) (checkReport, error) {
	out := checkReport{Run: run, Code: c.Code, RunCode: append([]string{}, c.Codes...), Checked: c.Shards, Differs: len(c.Differs), Shards: []checkedShard{}}
	visible, err := analysis.New(objects).Visible(ctx, run)
	if err != nil {
		return out, missing(err)
	}
	for _, made := range checkedTables {
		stage := made.stage
		shards, err := visible.Shards(ctx, made.table)
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
			out.Shards = append(out.Shards, outcomeOf(c.Differs, checkedShard{Step: s.Step, Stage: stage, Shard: parts.Shard, Digest: s.Digest, Same: true, table: made.table}))
		}
	}
	slices.SortStableFunc(out.Shards, func(x, y checkedShard) int { return cmp.Compare(x.Step, y.Step) })
	if len(out.Shards) != c.Shards {
		return out, fmt.Errorf("replay has made %d shards of run %s and its heads name %d: the record has changed meanwhile", c.Shards, run, len(out.Shards))
	}
	return out, nil
}

func outcomeOf(differs []wire.Different, s checkedShard) checkedShard {
	for _, d := range differs {
		if d.Step == s.Step && d.Stage == s.Stage && d.Shard == s.Shard && (d.Table == "" || d.Table == string(s.table)) {
			s.Same, s.Now = false, d.Digest
		}
	}
	return s
}

func (a *app) printCheck(r checkReport) error {
	fmt.Fprintln(a.out, "  step  stage      shard  digest            made again")
	for _, s := range r.Shards {
		shard, outcome := "all", "same"
		if s.Shard >= 0 {
			shard = fmt.Sprint(s.Shard)
		}
		if !s.Same {
			outcome = "differs: " + cmp.Or(s.Now, "nothing")
		}
		fmt.Fprintf(a.out, "%6d  %-9s  %5s  %s  %s\n", s.Step, s.Stage, shard, shortDigest(s.Digest), outcome)
	}
	if len(r.RunCode) > 0 {
		fmt.Fprintf(a.out, "checked by another program (%s) than that which made the run (%s)\n", shortDigest(r.Code), strings.Join(shortDigests(r.RunCode), ", "))
	}
	_, err := fmt.Fprintf(a.out, "run %s: %d shards made again, %d differ; nothing was committed\n", r.Run, r.Checked, r.Differs)
	return err
}

func shortDigests(digests []string) []string {
	out := make([]string, len(digests))
	for i, d := range digests {
		out[i] = shortDigest(d)
	}
	return out
}
