package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/bench/idle"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/workflows"
)

// The step that must stay below the limits.
const (
	largeShards = 256
	largeTurns  = 50
)

// stepsOfHistory is the number of steps after which a run continues as new.
const stepsOfHistory = 20

// grid is the load of a run of one step with this number of shards and turns.
type grid struct {
	shards, turns    int
	run, step, shard load // shard: the largest of all
}

// TestALargeStepStaysWithinTemporalsLimits runs the workflows on a real server. The activities do no work and answer
// with refs of the greatest length. With ROPEWALK_TEST_LIMITS the test runs the large step itself. With
// ROPEWALK_LONG_FORMS it runs two steps with fewer shards and as many turns, and extrapolates the load of the large
// step from them. A third small step checks the extrapolation. In each of these steps the shards record their own
// measured times, as in the large one.
func TestALargeStepStaysWithinTemporalsLimits(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_LIMITS", "test-limits")
	c := idleWorkers(t)
	if os.Getenv("ROPEWALK_TEST_LIMITS") != "" {
		g := measure(t, c, largeShards, largeTurns)
		g.step.within(t, "TrainStep")
		g.shard.within(t, "RolloutShard")
		g.run.times(stepsOfHistory).within(t, "TrainRun, twenty steps")
		return
	}
	few, more, between := measure(t, c, 10, largeTurns), measure(t, c, 20, largeTurns), measure(t, c, 14, largeTurns)
	step := law{few, more, func(g grid) load { return g.step }}
	run := law{few, more, func(g grid) load { return g.run }}
	step.holds(t, between)
	run.holds(t, between)
	// A shard's history does not depend on the other shards, and a step has a few events per shard, fewer than a shard
	// has turns. This makes a large step possible.
	require.Equal(t, few.shard.own, more.shard.own)
	require.LessOrEqual(t, more.step.own-few.step.own, 3*(more.shards-few.shards))

	step.at(largeShards).within(t, "TrainStep")
	more.shard.most(few.shard).within(t, "RolloutShard")
	run.at(largeShards).times(stepsOfHistory).within(t, "TrainRun, twenty steps")
}

// TestAStepOfEpisodesHasFewEvents runs a step whose shards are one activity each. Its history does not grow with the
// turns, and it stays below half of every limit with 256 shards.
func TestAStepOfEpisodesHasFewEvents(t *testing.T) {
	c := idleWorkers(t)
	of := func(shards, turns int) load {
		id := fmt.Sprintf("s%03d-t%02d-episodes", shards, turns)
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueCPU},
			workflows.TrainRunName,
			workflows.TrainRunInput{Run: id, RecipeYAML: fmt.Sprintf("%d %d", shards, turns)})
		require.NoError(t, err)
		require.NoError(t, run.Get(t.Context(), nil))
		step := loadOf(t, c, workflows.StepWorkflowID(id, 1))
		require.Zero(t, step.children)
		all := step.own + step.tasks + loadOf(t, c, id).own + loadOf(t, c, id).tasks
		t.Logf("%d shards of %d turns: %s; %d events with the run's", shards, turns, step, all)
		require.LessOrEqual(t, all, 60+15*shards, "events of a step and of the run around it")
		return step
	}
	require.Equal(t, of(10, 4).own, of(10, largeTurns).own, "the number of turns")
	few, more := grid{shards: 10, step: of(10, largeTurns-1)}, grid{shards: 20, step: of(20, largeTurns)}
	law{few, more, func(g grid) load { return g.step }}.at(largeShards).within(t, "TrainStep")
}

// TestARunTakesTwentyShortStepsItself runs as many steps as a history holds, each with as many shards as a step may
// have that the run takes itself. The run's history stays below half of every limit.
func TestARunTakesTwentyShortStepsItself(t *testing.T) {
	c := idleWorkers(t)
	const shards = 4
	id := fmt.Sprintf("s%03d-t%02d-own-episodes", shards, 4)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueCPU},
		workflows.TrainRunName,
		workflows.TrainRunInput{Run: id, RecipeYAML: fmt.Sprintf("%d %d %d", shards, 4, stepsOfHistory)})
	require.NoError(t, err)
	require.NoError(t, run.Get(t.Context(), nil))
	got := loadOf(t, c, id)
	t.Logf("run: %s", got)
	require.Zero(t, got.children)
	require.LessOrEqual(t, got.own+got.tasks, stepsOfHistory*(60+15*shards))
	got.within(t, "TrainRun, twenty own steps")
}

// law is the growth of a workflow's load, linear in the shards, through two grids with the same turns.
type law struct {
	few, more grid
	of        func(grid) load
}

// figure is one figure of the load of a step with this number of shards.
func (l law) figure(shards int, of func(load) int) int {
	few := of(l.of(l.few))
	perShard := float64(of(l.of(l.more))-few) / float64(l.more.shards-l.few.shards)
	return few + int(math.Ceil(perShard*float64(shards-l.few.shards)))
}

// holds requires that the law gives the load of another grid: the events exactly, the bytes within a tenth. Bytes
// differ with the number of digits in the measured times, and with the times at which activities happen to end.
func (l law) holds(t *testing.T, g grid) {
	t.Helper()
	got, what := l.of(g), fmt.Sprintf("%d shards of %d turns", g.shards, g.turns)
	require.Equal(t, l.figure(g.shards, ownEvents), got.own, what)
	require.InEpsilon(t, l.figure(g.shards, ownBytes), got.ownBytes, 0.1, what)
	require.Equal(t, slices.Sorted(maps.Keys(l.of(l.few).payloads)), slices.Sorted(maps.Keys(got.payloads)), what)
}

// at is the load of a step with the given number of shards. A history has at most three events of workflow tasks for
// each other event that wakes the workflow; it has fewer where one task handles several of them. Bytes and payloads get
// a margin of a tenth, by which the law may be off.
func (l law) at(shards int) load {
	margin := func(n int) int { return n + n/10 }
	out := load{own: l.figure(shards, ownEvents), pending: max(shards, l.of(l.more).pending),
		payloads: map[string]int{}}
	out.tasks, out.taskSize = 3*out.own, l.of(l.more).taskSize
	out.bytes = margin(l.figure(shards, ownBytes)) + out.tasks*out.taskSize
	for kind := range l.of(l.few).payloads {
		out.payloads[kind] = margin(l.figure(shards, payloadOf(kind)))
	}
	return out
}

func ownEvents(l load) int { return l.own }

func ownBytes(l load) int { return l.ownBytes }

func payloadOf(kind string) func(load) int {
	return func(l load) int { return l.payloads[kind] }
}

// idleWorkers starts workers whose activities do no work, in a namespace of the test's own.
func idleWorkers(t *testing.T) client.Client {
	t.Helper()
	h, _ := needs(t, emptyNamespace)
	c := h.dial(t)
	worker.SetStickyWorkflowCacheSize(1024)
	for _, queue := range []string{workflows.QueueCPU, workflows.QueueRollout, workflows.QueueSandbox,
		workflows.QueueGPU} {
		w := worker.New(c, queue, worker.Options{
			DisableWorkflowWorker: queue != workflows.QueueCPU,
			// The numbers are those that temporal.yaml gives a worker. The server has one connection to its database,
			// and a query that waits too long for it can leave the connection unusable.
			MaxConcurrentActivityTaskPollers: 2, MaxConcurrentActivityExecutionSize: 4,
			MaxConcurrentWorkflowTaskPollers: 2, MaxConcurrentWorkflowTaskExecutionSize: 4,
		})
		for name, run := range map[string]any{
			workflows.TrainRunName: workflows.TrainRun, workflows.TrainStepName: workflows.TrainStep,
			workflows.RolloutShardName: workflows.RolloutShard,
		} {
			if queue == workflows.QueueCPU {
				w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
			}
		}
		idle.Stages{}.Register(w)
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	return c
}

// measure runs one step and measures the load of each of its workflows.
func measure(t *testing.T, c client.Client, shards, turns int) grid {
	t.Helper()
	// ten times what is usual
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute+time.Duration(shards)*10*time.Second)
	defer cancel()
	id := fmt.Sprintf("s%03d-t%02d-", shards, turns)
	id += strings.Repeat("x", 128-len(id)) // the greatest length of a run's id
	started := time.Now()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueCPU},
		workflows.TrainRunName,
		workflows.TrainRunInput{Run: id, RecipeYAML: fmt.Sprintf("%d %d", shards, turns)})
	require.NoError(t, err)
	if err := run.Get(ctx, nil); err != nil {
		require.NoError(t, err, unfinished(t, c))
	}
	t.Logf("%d shards of %d turns took %s", shards, turns, time.Since(started).Round(time.Second))
	g := grid{shards: shards, turns: turns, run: loadOf(t, c, id), step: loadOf(t, c, workflows.StepWorkflowID(id, 1))}
	require.GreaterOrEqual(t, g.step.children, shards)
	for i := range shards {
		g.shard = g.shard.most(loadOf(t, c, workflows.ShardWorkflowID(id, 1, i)))
	}
	require.Contains(t, g.shard.payloads, api.RecordTimings+" scheduled", "every shard records its measured times")
	t.Logf("run: %s\nstep: %s\nshard: %s", g.run, g.step, g.shard)
	return g
}

// unfinished describes the workflows that are still open: what each waits for, and its history's last event.
func unfinished(t *testing.T, c client.Client) string {
	t.Helper()
	var out strings.Builder
	open, err := c.ListWorkflow(t.Context(),
		&workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'"})
	require.NoError(t, err)
	for _, w := range open.Executions {
		id := w.Execution.WorkflowId
		d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s %s: pending task %v, activities %v", w.Type.Name, id, d.PendingWorkflowTask,
			d.PendingActivities)
		last := ""
		for events := fetch(c, id, ""); events.HasNext(); {
			event, err := events.Next()
			require.NoError(t, err)
			last = event.String()
		}
		fmt.Fprintf(&out, ", last event %s\n", last)
	}
	return out.String()
}
