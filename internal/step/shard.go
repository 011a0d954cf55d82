package step

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Shard takes one shard of a step from its prompts to its rewards.
var Shard = Group[*api.EpisodesInput, *api.Episodes]{api.RunEpisodes, shard}

// shard generates turns and runs their tool calls until no trajectory waits for a tool. After a turn that is a summary,
// which calls nothing, the next turn follows at once.
func shard(r Runner, in *api.EpisodesInput, out *api.Episodes) error {
	last, edited := schema.Ref{}, ""
	for turn, more := 0, true; more && turn < in.MaxTurns; turn++ {
		var made api.Generated
		err := run(r, At{schema.StageRollout, in.Shard, turn}, fmt.Sprintf("shard %d, turn %d", in.Shard, turn),
			api.GenerateInput{Scope: in.Scope, Past: api.Past{Last: last}, Shard: in.Shard, Turn: turn,
				Prompts: in.Prompts, Policy: in.Policy}, &made)
		if err != nil {
			return err
		}
		last, more = made.Manifest, made.Calls+made.Open > 0
		if made.Calls == 0 {
			continue
		}
		ran, err := runTools(r, in, turn, last, made.Calls)
		if err != nil {
			return err
		}
		last = ran.Manifest
		if ran.Edited != "" {
			edited = ran.Edited
		}
	}
	return score(r, in, last, edited, out)
}

func runTools(r Runner, in *api.EpisodesInput, turn int, last schema.Ref, calls int) (out api.ToolsDone, err error) {
	return out, run(r, At{schema.StageSandbox, in.Shard, turn},
		fmt.Sprintf("shard %d, turn %d, %d calls", in.Shard, turn, calls),
		api.ToolsInput{Scope: in.Scope, Past: api.Past{Last: last}, Shard: in.Shard, Turn: turn, Prompts: in.Prompts},
		&out)
}

// score assembles the episodes, gets the verdicts that the recipe asks for, and scores them.
func score(r Runner, in *api.EpisodesInput, last schema.Ref, edited string, out *api.Episodes) error {
	at, note := At{schema.StageAssemble, in.Shard, -1}, ofShard(in.Shard)
	var joined api.Done
	err := run(r, at, note,
		api.AssembleInput{Scope: in.Scope, Past: api.Past{Last: last}, Shard: in.Shard, Prompts: in.Prompts}, &joined)
	if err != nil {
		return err
	}
	rewards := api.ScoreInput{Scope: in.Scope, Shard: in.Shard, Trajectories: joined.Manifest}
	for _, stage := range stages.Verdicts(in.Needs) {
		var got api.Verdicts
		at.Stage = stage
		if err := run(r, at, note, api.VerdictInput{Scope: in.Scope, Shard: in.Shard, Trajectories: joined.Manifest,
			Prompts: in.Prompts}, &got); err != nil {
			return err
		}
		rewards.Verdicts = append(rewards.Verdicts, got.Manifest)
	}
	out.Shard, out.Assembled, at.Stage = in.Shard, joined.Manifest, schema.StageReward
	if err := run(r, at, note, rewards, &out.Scored); err != nil {
		return err
	}
	if out.Scored.Edited == "" {
		out.Scored.Edited = edited
	}
	return record(r, in, out)
}

// record records the shard's measured times, if the step does not.
func record(r Runner, in *api.EpisodesInput, out *api.Episodes) error {
	if !in.Record {
		return nil
	}
	times := r.Spent()
	out.Busy = api.BusyIn(times)
	return run(r, At{stages.Timings, in.Shard, -1}, fmt.Sprintf("measured times of shard %d", in.Shard),
		api.RecordTimingsInput{Scope: in.Scope, Timings: times, Part: "step", Shard: &in.Shard}, &api.TimingsRecorded{})
}

// Import takes imported shards, whose calls are only recorded, to their rewards. in holds what they have in common.
func Import(r Runner, in api.EpisodesInput, imported []api.ImportedShard) ([]api.Episodes, error) {
	out := make([]api.Episodes, len(imported))
	return out, r.Each(len(out), func(r Runner, i int) error {
		in := in
		in.Shard, in.Prompts = i, imported[i].Manifest
		ran, err := runTools(r, &in, 0, in.Prompts, imported[i].Calls)
		if err != nil {
			return err
		}
		return score(r, &in, ran.Manifest, ran.Edited, &out[i])
	})
}
