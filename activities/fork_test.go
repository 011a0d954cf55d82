package activities_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/gc"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// forked trains a run that forks off another one.
func (b *bench) forked(t *testing.T, run string, at schema.ForkPoint, set ...string) workflows.TrainRunResult {
	t.Helper()
	out, err := b.train(t, workflows.TrainRunInput{Run: run, Fork: &at, Set: set})
	require.NoError(t, err)
	return out
}

// sound verifies a run.
func (b *bench) sound(t *testing.T, run string) verify.Report {
	t.Helper()
	report, err := verify.Run(t.Context(), b.store, run)
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	require.Zero(t, report.Orphans)
	return report
}

// dataOf lists the data of a step of a run, except for measured times, without the run's name.
func dataOf(t *testing.T, b *bench, run, step string) []string {
	t.Helper()
	return slices.DeleteFunc(dataDigests(t.Context(), t, b.store, run), func(key string) bool {
		return !strings.Contains(key, "/step="+step+"/")
	})
}

// With the same settings, a fork makes the rows and weights of the later steps as the other run did. It copies nothing
// of the shared steps, and every reader finds them.
func TestAForkGoesOnAsTheOtherRunDid(t *testing.T) {
	b := newBench(t, mem.New())
	whole := trainTiny(t, b, "whole", "evaluation.every=1")
	at := schema.ForkPoint{Run: "whole", Step: 3}
	fork := b.forked(t, "fork", at)
	require.Equal(t, whole.Policy.Digest, fork.Policy.Digest)
	require.Equal(t, whole.Final, fork.Final)
	require.NotEmpty(t, dataOf(t, b, "whole", "4"))
	require.Equal(t, dataOf(t, b, "whole", "4"), dataOf(t, b, "fork", "4"))
	for _, step := range []string{"1", "2", "3"} {
		require.Empty(t, dataOf(t, b, "fork", step))
		_, _, found, err := b.record.Head(t.Context(), "fork", step)
		require.NoError(t, err)
		require.True(t, found)
	}
	require.Len(t, slices.DeleteFunc(keys(t, b.store), func(key string) bool {
		return !strings.HasPrefix(key, schema.RunPrefix("fork")+"checkpoints/") ||
			!strings.HasSuffix(key, "/model.safetensors")
	}), 1, "only step 4 has a checkpoint of its own")
	require.Equal(t, 4, b.sound(t, "fork").Heads)
	b.sound(t, "whole")
	b.readsAlike(t, "whole", "fork")
	checked(t, b.store, "fork")

	orphans, err := gc.Collect(t.Context(), b.store, gc.Options{Now: func() time.Time {
		return time.Now().Add(time.Hour)
	}})
	require.NoError(t, err)
	require.Empty(t, orphans.Collect)
	require.Zero(t, orphans.Unknown)
	again, err := b.train(t, workflows.TrainRunInput{Run: "fork", Resume: true})
	require.NoError(t, err)
	require.Equal(t, fork.Policy, again.Policy)
}

// readsAlike compares what readers find of a run and of its fork with the same settings.
func (b *bench) readsAlike(t *testing.T, run, fork string) {
	t.Helper()
	record := analysis.New(b.store)
	var tables [2][]string
	var evaluations [2][]analysis.EvaluationRows
	for i, name := range []string{run, fork} {
		v, err := record.Visible(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3, 4}, v.Steps())
		for _, table := range []schema.Table{schema.Rewards, schema.Turns, schema.Evaluations} {
			shards, err := v.Shards(t.Context(), table)
			require.NoError(t, err)
			for _, s := range shards {
				require.Equal(t, name, s.Run)
				tables[i] = append(tables[i], string(table)+" "+s.Digest)
			}
		}
		evaluations[i], err = v.EvaluationRows(t.Context())
		require.NoError(t, err)
		_, err = v.Pieces(t.Context(), 2)
		require.NoError(t, err)
	}
	require.NotEmpty(t, tables[0])
	require.Equal(t, tables[0], tables[1])
	require.Len(t, evaluations[0], 5)
	require.Equal(t, evaluations[0], evaluations[1])
	a, err := record.Run(t.Context(), run)
	require.NoError(t, err)
	f, err := record.Run(t.Context(), fork)
	require.NoError(t, err)
	require.Equal(t, a.StepsDone, f.StepsDone)
	require.Equal(t, a.Before, f.Before)
	require.NotNil(t, f.Before)
	whole, err := record.Cost(t.Context(), run)
	require.NoError(t, err)
	part, err := record.Cost(t.Context(), fork)
	require.NoError(t, err)
	require.Less(t, part.Trajectories, whole.Trajectories/2)
	require.Less(t, part.Activities, whole.Activities)
}

// A fork of a fork goes on with other settings. Damage of what it shares is found, and no run can be deleted before its
// forks.
func TestForksOfForks(t *testing.T) {
	b := newBench(t, mem.New())
	trainTiny(t, b, "whole", "steps=2")
	b.forked(t, "fork", schema.ForkPoint{Run: "whole", Step: 2}, "steps=3", "seed=7", "checkpoint.keep_last=3")
	other := b.forked(t, "other", schema.ForkPoint{Run: "fork", Step: 3}, "steps=4", "optimizer.lr=0.01",
		"resample.vspo=null", "resample.roc=null")
	require.Equal(t, 4, other.Steps)
	head, _, _, err := b.record.Head(t.Context(), "other", "1")
	require.NoError(t, err)
	require.Equal(t, "whole", head.From)
	head, _, _, err = b.record.Head(t.Context(), "other", "3")
	require.NoError(t, err)
	require.Equal(t, "fork", head.From)
	b.sound(t, "other")
	v, err := analysis.New(b.store).Visible(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, schema.ForkPoint{Run: "fork", Step: 3}, v.Fork())
	first, err := v.EvaluationRows(t.Context())
	require.NoError(t, err)
	require.Equal(t, analysis.NoStep, first[0].Step)

	_, err = runReplay(t, b.store, workflows.ReplayStageInput{Run: "other", Step: 1, From: schema.StageReward})
	require.ErrorContains(t, err, "step 1 of run other is one of run whole")
	for _, run := range []string{"whole", "fork"} {
		_, err = gc.DeleteRun(t.Context(), b.store, run, gc.Removal{Delete: true})
		require.ErrorContains(t, err, "shares its steps with its forks: delete ")
	}
	damaged := copied(t, b.store)
	shards, err := v.StepShards(t.Context(), 1, schema.Rewards)
	require.NoError(t, err)
	require.NoError(t, damaged.Delete(t.Context(), shards[0].Key))
	report, err := verify.Run(t.Context(), damaged, "other")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(report.Faults, func(f verify.Fault) bool { return f.Key == shards[0].Key }))
	for _, run := range []string{"other", "fork", "whole"} {
		_, err = gc.DeleteRun(t.Context(), b.store, run, gc.Removal{Delete: true})
		require.NoError(t, err)
		require.NotContains(t, strings.Join(keys(t, b.store), "\n"), schema.RunPrefix(run)+"table=")
	}
}

// divergent is an engine whose gradients are not finite any more after some optimiser steps.
type divergent struct {
	policy.Engine
	left int
}

func (d *divergent) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	if d.left--; d.left < 0 {
		return policy.StepStats{}, &policy.NonFiniteError{Name: "gradient"}
	}
	return d.Engine.Step(ctx, role, o)
}

// A run that waits for a person can be forked at any step that it has finished, and goes on waiting.
func TestForksOfAParkedRun(t *testing.T) {
	b := newBench(t, mem.New())
	whole := trainTiny(t, b, "whole")
	worker := *b
	worker.deps = pipelinetest.Deps(t, b.store, pipelinetest.Wrap{Trainer: func(e policy.Engine) policy.Engine {
		return &divergent{Engine: e, left: 2}
	}})
	_, err := trainTinyError(t, &worker, "parked")
	require.ErrorContains(t, err, "parked")
	require.ErrorContains(t, err, "gradient")
	fork := b.forked(t, "fork", schema.ForkPoint{Run: "parked", Step: 2})
	require.Equal(t, whole.Policy.Digest, fork.Policy.Digest)
	require.Equal(t, dataOf(t, b, "whole", "4"), dataOf(t, b, "fork", "4"))
	b.sound(t, "fork")
	_, err = b.train(t, workflows.TrainRunInput{Run: "other", Fork: &schema.ForkPoint{Run: "parked", Step: 3}})
	require.ErrorContains(t, err, "step: run parked has finished no step 3")
}

// A fork that cannot go on is refused before it commits anything.
func TestForksThatAreRefused(t *testing.T) {
	b := newBench(t, mem.New())
	trainTiny(t, b, "whole", "steps=2", "checkpoint.keep_last=1")
	for want, in := range map[string]workflows.TrainRunInput{
		"step: run whole has finished no step 9":         {Fork: &schema.ForkPoint{Run: "whole", Step: 9}},
		"step: run none has finished no step 1":          {Fork: &schema.ForkPoint{Run: "none", Step: 1}},
		"fork: step 0: must be from 1":                   {Fork: &schema.ForkPoint{Run: "whole"}},
		"steps: must be more than the 2 steps":           {Fork: &schema.ForkPoint{Run: "whole", Step: 2}},
		"the policy after step 1 of run whole is pruned": {Fork: &schema.ForkPoint{Run: "whole", Step: 1}},
		"policy: the model of a run cannot change": {Fork: &schema.ForkPoint{Run: "whole", Step: 2},
			Set: []string{"steps=3", "policy.ffn=64"}},
		"fork: goes on with the recipe of the other run": {Fork: &schema.ForkPoint{Run: "whole", Step: 2},
			Recipe: "quickstart"},
	} {
		in.Run = "fork"
		_, err := b.train(t, in)
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, strings.Join(keys(t, b.store), "\n"), schema.CatalogueKey("fork"))
	_, err := b.train(t, workflows.TrainRunInput{Run: "whole", Fork: &schema.ForkPoint{Run: "whole", Step: 2}})
	require.ErrorContains(t, err, "run_id: a fork of run whole needs a name of its own")
}

// What a step continues from is found in the shared steps: policies that a pipelined run samples from, the replay
// buffer, and the critic with the penalty's coefficient.
func TestForksContinueWhatStepsLeave(t *testing.T) {
	for name, set := range map[string][]string{"pipelined": pipelined, "buffer": imitating, "critic": actorCritic} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, mem.New())
			whole := trainTiny(t, b, "whole", append(slices.Clone(set), "checkpoint.keep_last=9")...)
			fork := b.forked(t, "fork", schema.ForkPoint{Run: "whole", Step: 2})
			require.Equal(t, whole.Policy.Digest, fork.Policy.Digest)
			last := strconv.Itoa(whole.Steps)
			require.Equal(t, dataOf(t, b, "whole", last), dataOf(t, b, "fork", last))
			b.sound(t, "fork")
		})
	}
}
