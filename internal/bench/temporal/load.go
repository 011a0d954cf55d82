package temporal

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/idle"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// turnsOfShards is the number of turns of an episode; the history of a step does not depend on it.
const turnsOfShards = 4

// beats is the time between two heartbeats that reach the server (worker.max_heartbeat_throttle).
const beats = 2 * time.Second

// endless is a number of steps that no measurement reaches.
const endless = 1 << 20

// load puts a load on the server and measures it.
func (o options) load(ctx context.Context, c client.Client, s *server, l load) (out []bench.Figure, err error) {
	starts := &delays{}
	stop, err := work(c, starts, l)
	if err != nil {
		return nil, err
	}
	defer stop()
	var ids []string
	for i := range l.Runs {
		id := fmt.Sprintf("s%03d-t%02d-%d-%d-episodes", l.Shards, turnsOfShards, time.Now().UnixNano(), i)
		if _, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueCPU},
			workflows.TrainRunName, workflows.TrainRunInput{Run: id,
				RecipeYAML: fmt.Sprintf("%d %d %d", l.Shards, turnsOfShards, endless)}); err != nil {
			return nil, fmt.Errorf("start a run: %w", err)
		}
		ids = append(ids, id)
	}
	defer func() {
		for _, id := range ids {
			_ = c.TerminateWorkflow(context.WithoutCancel(ctx), id, "", "measured")
		}
	}()
	// Runs start one after the other and then step at different times.
	if err := sleep(ctx, 5*time.Second+time.Duration(l.Seconds*float64(time.Second))); err != nil {
		return nil, err
	}
	starts.reset()
	from, own, all := time.Now(), bench.ProcessorTime(), busyTime()
	if err := sleep(ctx, o.window); err != nil {
		return nil, err
	}
	to := time.Now()
	took := to.Sub(from).Seconds()
	server, database := s.server.Used(from, to)/took, s.database.Used(from, to)/took
	load := (bench.ProcessorTime() - own).Seconds() / took
	others := max(0, (busyTime()-all)/took-server-database-load)
	d, err := c.DescribeWorkflowExecution(ctx, workflows.StepWorkflowID(ids[0], 1), "")
	if err != nil {
		return nil, fmt.Errorf("describe the first step, which the load should have finished: %w", err)
	}
	info := d.WorkflowExecutionInfo
	activities, figures := starts.figures(to.Sub(from))
	return append(figures, bench.Of("ms an activity", 1000*(server+database)/max(activities, 0.001)),
		bench.Of("server cores", server), bench.Of("database", database), bench.Of("load", load),
		bench.Of("others", others), bench.Of("bytes a step", float64(info.GetHistorySizeBytes())),
		bench.Of("events", float64(info.GetHistoryLength()))), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// busyTime is the processor time of everything on this machine, in seconds: /proc/stat's first line without its idle
// times.
func busyTime() float64 {
	var s procfs.Stat
	all, err := procfs.NewDefaultFS()
	if err == nil {
		s, err = all.Stat()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench temporal: read processor time:", err)
	}
	c := s.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal
}

// work starts workers of all queues, with room for all activities of the load.
func work(c client.Client, starts *delays, l load) (stop func(), err error) {
	worker.SetStickyWorkflowCacheSize(4096)
	var running []worker.Worker
	stop = func() {
		for _, w := range running {
			w.Stop()
		}
	}
	stages := idle.Stages{Hold: time.Duration(l.Seconds * float64(time.Second)), Beat: beats}
	for _, queue := range []string{workflows.QueueCPU, workflows.QueueRollout, workflows.QueueSandbox,
		workflows.QueueGPU} {
		w := worker.New(c, queue, worker.Options{
			DisableWorkflowWorker:            queue != workflows.QueueCPU,
			MaxConcurrentActivityTaskPollers: 8, MaxConcurrentActivityExecutionSize: max(100, 2*l.Runs*l.Shards),
			MaxConcurrentWorkflowTaskPollers: 8, MaxConcurrentWorkflowTaskExecutionSize: 64,
			MaxHeartbeatThrottleInterval: beats, DefaultHeartbeatThrottleInterval: beats,
			Interceptors: []interceptor.WorkerInterceptor{starts},
		})
		if queue == workflows.QueueCPU {
			workflows.Register(w)
		}
		stages.Register(w)
		if err := w.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("poll queue %s: %w", queue, err)
		}
		running = append(running, w)
	}
	return stop, nil
}

// delays intercepts activities, and holds how late each of them started.
type delays struct {
	interceptor.WorkerInterceptorBase

	mu    sync.Mutex
	late  []time.Duration
	steps int // updates begun: one a step
	open  int // activities
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (d *delays) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	one := &timed{all: d}
	one.Next = next
	return one
}

type timed struct {
	interceptor.ActivityInboundInterceptorBase
	all *delays
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (t *timed) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	t.all.mu.Lock()
	t.all.late = append(t.all.late, time.Since(info.ScheduledTime))
	if info.ActivityType.Name == api.UpdatePolicy {
		t.all.steps++
	}
	t.all.open++
	t.all.mu.Unlock()
	defer func() {
		t.all.mu.Lock()
		defer t.all.mu.Unlock()
		t.all.open--
	}()
	return t.Next.ExecuteActivity(ctx, in)
}

func (d *delays) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late, d.steps = nil, 0
}

// figures are what has been counted in a time. Heartbeats are those that could have come.
func (d *delays) figures(took time.Duration) (activities float64, out []bench.Figure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	activities = float64(len(d.late)) / took.Seconds()
	slices.Sort(d.late)
	at := func(share float64) float64 {
		if len(d.late) == 0 {
			return 0
		}
		return bench.Milliseconds(bench.Quantile(d.late, share))
	}
	return activities, []bench.Figure{bench.Of("activities/s", activities),
		bench.Of("steps/s", float64(d.steps)/took.Seconds()), bench.Of("to start p50 ms", at(0.5)),
		bench.Of("p99 ms", at(0.99)), bench.Of("heartbeats/s", float64(d.open)/beats.Seconds())}
}
