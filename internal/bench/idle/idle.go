// Package idle has the activities of a training run without their work: they answer at once, or after a given time,
// with refs of the greatest length. What is left is the load that the workflows put on Temporal's server.
package idle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Stages gives the answers of a training run's activities without doing their work. The recipe is "SHARDS TURNS" or
// "SHARDS TURNS STEPS".
type Stages struct {
	Hold time.Duration // how long the episodes of a shard take
	Beat time.Duration // the time between two heartbeats meanwhile
}

// Register registers the activities.
func (i Stages) Register(w worker.Worker) {
	for name, body := range map[string]any{
		api.PrepareRun:           i.prepare,
		api.WarmStart:            i.warmStart,
		api.SelectPrompts:        i.prompts,
		api.GenerateRollouts:     i.generate,
		api.ExecuteToolCalls:     i.tools,
		api.RunEpisodes:          i.episodes,
		api.AssembleTrajectories: i.assemble,
		api.ScoreRewards:         i.score,
		api.CommitStages:         i.commit,
		api.MakeBatch:            i.batch,
		api.Resample:             i.resample,
		api.ComputeAdvantages:    i.advantages,
		api.UpdatePolicy:         i.update,
		api.PublishPolicy:        i.publish,
		api.UpdateAndPublish:     i.finish,
		api.PruneCheckpoints:     i.prune,
		api.Evaluate:             i.evaluate,
		api.RecordTimings:        i.record,
	} {
		w.RegisterActivityWithOptions(body, activity.RegisterOptions{Name: name})
	}
}

// done is the answer of a scope's stage.
func done(s api.Scope, stage string, turn, shard int) api.Done {
	place := schema.AtInit(s.Run, stage)
	if s.Step != api.InitStep {
		place = schema.At(s.Run, s.Step, stage)
	}
	place = place.WithTurn(turn).WithShard(shard)
	now := time.Now().UnixMicro()
	return api.Done{
		Manifest: schema.Ref{Key: place.ManifestKey(), Digest: strings.Repeat("d", 64)},
		Timing: api.Timing{
			Stage: stage, Shard: shard, Turn: turn, Start: now, End: now + 1_000_000, Queue: 0.123456789,
			CPU: 12.3456789, Attempt: 1,
			Host: strings.Repeat("h", 32), Rows: 1024, Tokens: 1 << 20,
		},
	}
}

func policyOf(s api.Scope, stage string) api.PolicyRef {
	return api.PolicyRef{Manifest: done(s, stage, -1, -1).Manifest, Digest: strings.Repeat("p", 64),
		Step: max(s.Step, 0)}
}

func (Stages) prepare(in api.PrepareInput) (api.Prepared, error) {
	out := api.Prepared{Done: done(api.Scope{Run: in.Run, Step: api.InitStep}, schema.StagePrepare, -1, -1),
		NextStep: 1}
	out.Plan = api.Plan{Recipe: "idle", Steps: 1, Interleaved: strings.HasSuffix(in.Run, "episodes")}
	words := strings.Fields(in.RecipeYAML)
	for i, n := range []*int{&out.Plan.Shards, &out.Plan.MaxTurns, &out.Plan.Steps} {
		if i == 2 && len(words) == 2 {
			break
		}
		var err error
		if *n, err = strconv.Atoi(words[i]); err != nil {
			return out, fmt.Errorf("read %q: want SHARDS TURNS [STEPS]: %w", in.RecipeYAML, err)
		}
	}
	return out, nil
}

func (Stages) warmStart(in api.Scope) (api.WarmStarted, error) {
	return api.WarmStarted{Done: done(in, schema.StageWarmStart, -1, -1), Policy: policyOf(in,
		schema.StageWarmStart)}, nil
}

func (Stages) prompts(in api.PromptsInput) (api.Done, error) {
	return done(in.Scope, schema.StagePrompts, -1, -1), nil
}

// generate has calls in every turn except the last one that max_turns allows.
func (Stages) generate(ctx context.Context, in api.GenerateInput) (api.Generated, error) {
	for strings.Contains(in.Run, Held) {
		select {
		case <-ctx.Done():
			return api.Generated{}, ctx.Err()
		case <-time.After(100 * time.Millisecond):
			activity.RecordHeartbeat(ctx)
		}
	}
	return api.Generated{Done: done(in.Scope, schema.StageRollout, in.Turn, in.Shard), Calls: 1024, Tokens: 1 << 20},
		nil
}

// Held is part of the ids of runs whose shards generate until they are told to end.
const Held = "held"

// Failing is part of the ids of runs whose shard 1 fails for good.
const Failing = "failing"

func (Stages) tools(in api.ToolsInput) (api.ToolsDone, error) {
	if strings.Contains(in.Run, Failing) && in.Shard == 1 && in.Turn == 1 {
		return api.ToolsDone{}, temporal.NewNonRetryableApplicationError("no room on the device", "disk_full", nil)
	}
	return api.ToolsDone{Done: done(in.Scope, schema.StageSandbox, in.Turn, in.Shard), Calls: 1024, Failed: 512}, nil
}

// episodes has the results of a shard in which every turn calls tools.
func (i Stages) episodes(ctx context.Context, in api.EpisodesInput) (api.Episodes, error) {
	for end := time.Now().Add(i.Hold); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return api.Episodes{}, ctx.Err()
		case <-time.After(min(i.Beat, time.Until(end))):
			activity.RecordHeartbeat(ctx)
		}
	}
	scored, err := i.score(api.ScoreInput{Scope: in.Scope, Shard: in.Shard})
	out := api.Episodes{Shard: in.Shard, Assembled: done(in.Scope, schema.StageAssemble, -1, in.Shard).Manifest,
		Scored: scored}
	for turn := range in.MaxTurns {
		for _, stage := range []string{schema.StageRollout, schema.StageSandbox} {
			out.Timings = append(out.Timings, done(in.Scope, stage, turn, in.Shard).Timing)
		}
	}
	if in.Record {
		out.Busy, out.Timings = api.BusyIn(out.Timings), nil
	}
	return out, err
}

func (Stages) assemble(in api.AssembleInput) (api.Done, error) {
	return done(in.Scope, schema.StageAssemble, -1, in.Shard), nil
}

func (Stages) score(in api.ScoreInput) (api.Scored, error) {
	return api.Scored{
		Done: done(in.Scope, schema.StageReward, -1, in.Shard), Trajectories: 1024, RewardSum: 512.5, Successes: 512,
		PositiveCalls: 9999, PositiveErrors: 999, ToolCalls: 9999, Tokens: 1 << 20,
	}, nil
}

// commit answers with a stage manifest for each turn and its calls. In a real run the step's prompts say how
// many turns there were; here the run's id says it.
func (Stages) commit(in api.CommitInput) (api.Committed, error) {
	var shards, turns int
	if _, err := fmt.Sscanf(in.Run, "s%d-t%d", &shards, &turns); err != nil {
		return api.Committed{}, err
	}
	if len(in.Rewards) != shards {
		return api.Committed{}, fmt.Errorf("got the rewards of %d shards, want %d", len(in.Rewards), shards)
	}
	out := api.Committed{Done: done(in.Scope, stages.Commit, -1, -1)}
	add := func(stage string, turn int) {
		ref := done(in.Scope, stage, turn, -1).Manifest
		out.Stages = append(out.Stages, api.StageRef{Stage: stage, Ref: ref})
	}
	for turn := range turns {
		add(schema.StageRollout, turn)
		add(schema.StageSandbox, turn)
	}
	add(schema.StageAssemble, -1)
	add(schema.StageReward, -1)
	return out, nil
}

// batch has the results of all stages between the rewards and the update.
func (i Stages) batch(in api.BatchInput) (out api.Batch, err error) {
	if out.Committed, err = i.commit(*in.Commit); err != nil {
		return out, err
	}
	if out.Resampled, err = i.resample(api.StageInput{Scope: in.Scope}); err != nil {
		return out, err
	}
	out.Batch, err = i.advantages(api.StageInput{Scope: in.Scope})
	out.Made = out.Committed.Stages
	for _, stage := range []string{schema.StageResample, schema.StageAdvantage} {
		out.Made = append(out.Made, api.StageRef{Stage: stage, Ref: out.Of(stage).Common().Manifest})
	}
	out.Timings = []api.Timing{out.Committed.Timing, out.Resampled.Timing, out.Batch.Timing}
	return out, err
}

func (Stages) resample(in api.StageInput) (api.Resampled, error) {
	return api.Resampled{Done: done(in.Scope, schema.StageResample, -1, -1), Kept: 1 << 17, KeptGroups: 1 << 12}, nil
}

func (Stages) advantages(in api.StageInput) (api.Advantages, error) {
	return api.Advantages{Done: done(in.Scope, schema.StageAdvantage, -1, -1), Rows: 1 << 17, Tokens: 1 << 28}, nil
}

func (Stages) update(in api.UpdateInput) (api.Updated, error) {
	return api.Updated{Done: done(in.Scope, schema.StageUpdate, -1, -1), Policy: policyOf(in.Scope,
			schema.StageUpdate)},
		nil
}

func (Stages) publish(in api.PublishInput) (api.Published, error) {
	return api.Published{Done: done(in.Scope, schema.StagePublish, -1, -1)}, nil
}

func (i Stages) finish(in api.FinishInput) (out api.Finished, err error) {
	if out.Updated, err = i.update(in.UpdateInput); err == nil {
		out.Published, err = i.publish(api.PublishInput{Scope: in.Scope})
	}
	return out, err
}

// prune keeps the best ten of the evaluations and the checkpoints that they need.
func (Stages) prune(in api.PruneInput) (api.Pruned, error) {
	out := api.Pruned{Steps: []int{in.Step}, Timing: done(in.Scope, "prune", -1, -1).Timing}
	out.Retention = api.Retention{Rule: &api.RetentionRule{Every: 10, KeepLast: 10, KeepBest: 10}, Past: in.Step}
	for step := range 10 {
		at := schema.At(in.Run, step, schema.StageUpdate)
		out.Retention.Spared = append(out.Retention.Spared, api.SparedCheckpoint{Prefix: at.ManifestKey(), First: step,
			Last: step})
		out.Retention.Best = append(out.Retention.Best, api.EvaluatedStep{Step: step, Success: 0.123456789})
	}
	return out, nil
}

func (Stages) evaluate(in api.EvaluateInput) (api.Evaluated, error) {
	return api.Evaluated{Done: done(in.Scope, schema.StageEvaluate, -1, -1)}, nil
}

func (Stages) record(in api.RecordTimingsInput) (api.Done, error) {
	return done(in.Scope, stages.Timings, -1, -1), nil
}
