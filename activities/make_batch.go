package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// MakeBatch runs the short stages between a step's rollout and its update in one activity: it commits the sharded
// stages, resamples, makes the training batch and takes the replay buffer through the step. Each stage commits what it
// commits as an activity of its own, so an attempt continues after the last manifest of an earlier one, and a replay
// makes the stages one by one. Nothing runs between two activities of a step, and these stages take less time than
// that.
type MakeBatch struct{ *Deps }

// Execute runs the stages that the input asks for.
func (a MakeBatch) Execute(ctx context.Context, in api.BatchInput) (api.Batch, error) {
	b := &batchRun{parts: parts{timeouts: in.Timeouts}, deps: a.Deps, in: in}
	queue, err := a.together(ctx, in.Scope, b.run)
	if b.out.Timings = b.timings; len(b.timings) > 0 {
		b.out.Timings[0].Queue = queue
	}
	return b.out, err
}

// batchRun is one execution of MakeBatch.
type batchRun struct {
	parts
	deps *Deps
	in   api.BatchInput
	out  api.Batch
}

func (b *batchRun) run(ctx context.Context) error {
	if b.in.Commit != nil {
		if err := b.commit(ctx); err != nil {
			return err
		}
	}
	if b.in.Selection == (schema.Ref{}) {
		if err := b.resample(ctx); err != nil {
			return err
		}
	}
	if b.in.Models {
		return nil
	}
	var err error
	b.out.Batch, err = inner(ctx, &b.parts, part{api.StageAdvantage, api.ComputeAdvantages, -1},
		ComputeAdvantages{b.deps}.Execute, api.AdvantageInput{Scope: b.in.Scope, Turns: b.in.Turns,
			Rewards: b.in.Rewards, Selection: b.in.Selection, Outputs: b.in.Outputs}, (*api.Advantages).Its)
	if err != nil || !b.in.Buffer {
		return err
	}
	b.out.Buffered, err = inner(ctx, &b.parts, part{api.StageBuffer, api.UpdateReplayBuffer, -1},
		UpdateReplayBuffer{b.deps}.Execute, api.BufferInput{Scope: b.in.Scope, Previous: b.in.Previous,
			Rewards: b.in.Rewards, Batch: b.out.Batch.Manifest}, (*api.Buffered).Its)
	return err
}

// commit commits the sharded stages. The stages after it read what it has committed.
func (b *batchRun) commit(ctx context.Context) error {
	done, err := inner(ctx, &b.parts, part{api.StageCommit, api.CommitStages, -1}, CommitStages{b.deps}.Execute,
		*b.in.Commit, (*api.Committed).Its)
	if err != nil {
		return err
	}
	b.out.Committed = done.Stages
	found := api.RolledOut(done.Stages)
	b.in.Turns, b.in.Rewards = found.Turns, found.Rewards
	if found.Prompts != (schema.Ref{}) {
		b.in.Prompts = found.Prompts
	}
	return nil
}

func (b *batchRun) resample(ctx context.Context) (err error) {
	b.out.Resampled, err = inner(ctx, &b.parts, part{api.StageResample, api.Resample, -1}, Resample{b.deps}.Execute,
		api.ResampleInput{Scope: b.in.Scope, Rewards: b.in.Rewards, Prompts: b.in.Prompts, Excluded: b.in.Excluded},
		(*api.Resampled).Its)
	b.in.Selection = b.out.Resampled.Manifest
	return err
}
