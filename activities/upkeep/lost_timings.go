package upkeep

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// interval identifies the measured time of a stage's execution within a step.
type interval struct {
	stage       string
	shard, turn int32
}

// adoptedTimes returns the measured times of a finished step as an execution would have them that adopted all that the
// step has committed: the times of this execution, for each manifest whose own times no shard has recorded.
func (a RecordTimings) adoptedTimes(ctx context.Context, in api.RecordTimingsInput, this api.Timing) ([]api.Timing,
	error) {
	head, _, found, err := a.Record.Head(ctx, in.Run, strconv.Itoa(in.Step))
	if err == nil && !found {
		err = badinput.Errorf("step: step %d of run %s is not done, so its times may still come", in.Step, in.Run)
	}
	if err != nil {
		return nil, err
	}
	recorded, err := a.recordedByShards(ctx, in, head.Generations[schema.StageReward])
	if err != nil {
		return nil, err
	}
	adopted := api.Timing{Stage: stages.Commit, Shard: -1, Turn: -1, Start: this.Start, End: this.Start,
		Attempt: this.Attempt, Host: this.Host, Adopted: true}
	out := []api.Timing{adopted} // the stage commit made the others' manifests, and has none itself
	for _, stage := range stages.InStep() {
		for _, ref := range head.Stages[stage] {
			m, err := a.Record.Read(ctx, ref)
			if err != nil {
				return nil, err
			}
			made, err := a.Record.Parts(ctx, m)
			if err != nil {
				return nil, err
			}
			if len(m.Parts) == 0 {
				made = []schema.Manifest{m}
			}
			for _, m := range made {
				if recorded[interval{stage, int32(m.Shard), int32(m.Turn)}] {
					continue
				}
				adopted.Stage, adopted.Shard, adopted.Turn = stage, m.Shard, m.Turn
				adopted.Rows, adopted.Tokens = int64(m.Stats[schema.StatRows]), int64(m.Stats[schema.StatTokens])
				out = append(out, adopted)
			}
		}
	}
	return out, nil
}

// recordedByShards finds the stages whose times the shards of a step have recorded.
func (a RecordTimings) recordedByShards(ctx context.Context, in api.RecordTimingsInput, gen int) (map[interval]bool,
	error) {
	places, err := a.StepPlaces(ctx, in.Run, in.Step)
	if err != nil {
		return nil, err
	}
	out := map[interval]bool{}
	for _, p := range places {
		if p.Stage != stage.TimingsStep || p.Shard < 0 || p.Gen != gen {
			continue
		}
		_, ref, _, err := a.Record.Lookup(ctx, p)
		if err != nil {
			return nil, err
		}
		rows, err := record.Read[schema.TimingRow](ctx, a.Records, ref)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[interval{r.Stage, r.Shard, r.Turn}] = true
		}
	}
	return out, nil
}
