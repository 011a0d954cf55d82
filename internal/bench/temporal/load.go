package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/bench/idle"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// figures of one load.
type figures struct {
	load
	Activities float64 `json:"activities_per_second"`
	Beats      float64 `json:"heartbeats_per_second"` // at most: one for each open activity every five seconds
	Steps      float64 `json:"steps_per_second"`
	P50        float64 `json:"schedule_to_start_p50_ms"`
	P99        float64 `json:"schedule_to_start_p99_ms"`
	History    int     `json:"history_bytes_per_step"` // of the step's workflow
	Events     int     `json:"history_events_per_step"`
	Server     float64 `json:"server_cores"` // processor seconds a second
	Database   float64 `json:"database_cores"`
	Load       float64 `json:"load_cores"`   // of the workers that do no work
	Others     float64 `json:"others_cores"` // of all that has nothing to do with the measurement
}

// each is the processor time of server and database for an activity, in ms. Workflow tasks, heartbeats and polls are
// part of it.
func (f figures) each() float64 { return 1000 * (f.Server + f.Database) / max(f.Activities, 0.001) }

// String is a row for people.
func (f figures) String() string {
	return fmt.Sprintf("%3d × %2d × %4g s: %6.1f activities/s, %5.2f steps/s, schedule to start p50 %5.0f ms, "+
		"p99 %6.0f ms, %.0f heartbeats/s, %d bytes and %d events a step; %.1f ms an activity; "+
		"cores: server %.2f, database %.2f, load %.2f, others %.2f",
		f.Runs, f.Shards, f.Seconds, f.Activities, f.Steps, f.P50, f.P99, f.Beats, f.History, f.Events, f.each(),
		f.Server, f.Database, f.Load, f.Others)
}

// turnsOfShards is the number of turns of an episode; the history of a step does not depend on it.
const turnsOfShards = 4

// beats is the time between two heartbeats that reach the server (worker.max_heartbeat_throttle).
const beats = 2 * time.Second

// endless is a number of steps that no measurement reaches.
const endless = 1 << 20

// load puts a load on the server and measures it.
func (o options) load(ctx context.Context, c client.Client, s *server, l load) (f figures, err error) {
	starts := &delays{}
	stop, err := work(c, starts, l)
	if err != nil {
		return f, err
	}
	defer stop()
	var ids []string
	for i := range l.Runs {
		id := fmt.Sprintf("s%03d-t%02d-%d-%d-episodes", l.Shards, turnsOfShards, time.Now().UnixNano(), i)
		if _, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueCPU},
			workflows.TrainRunName, workflows.TrainRunInput{Run: id,
				RecipeYAML: fmt.Sprintf("%d %d %d", l.Shards, turnsOfShards, endless)}); err != nil {
			return f, fmt.Errorf("start a run: %w", err)
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
		return f, err
	}
	starts.reset()
	from, own, all := time.Now(), ownTime(), busyTime()
	if err := sleep(ctx, o.window); err != nil {
		return f, err
	}
	to := time.Now()
	f = starts.figures(to.Sub(from))
	f.load, f.Load = l, (ownTime()-own)/to.Sub(from).Seconds()
	f.Server = s.server.Used(from, to) / to.Sub(from).Seconds()
	if s.database != nil {
		f.Database = s.database.Used(from, to) / to.Sub(from).Seconds()
	}
	f.Others = max(0, (busyTime()-all)/to.Sub(from).Seconds()-f.Server-f.Database-f.Load)
	d, err := c.DescribeWorkflowExecution(ctx, workflows.StepWorkflowID(ids[0], 1), "")
	if err != nil {
		return f, fmt.Errorf("describe the first step, which the load should have finished: %w", err)
	}
	f.History = int(d.WorkflowExecutionInfo.GetHistorySizeBytes())
	f.Events = int(d.WorkflowExecutionInfo.GetHistoryLength())
	return f, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ownTime is the processor time of this process, in seconds.
func ownTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fmt.Fprintln(os.Stderr, "bench temporal: read processor time:", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// busyTime is the processor time of everything on this machine, in seconds: /proc/stat's first line without its idle
// times.
func busyTime() (seconds float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench temporal: read processor time:", err)
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(line) {
		n, err := strconv.ParseFloat(word, 64)
		const idle, waiting, guests = 4, 5, 9
		if err == nil && i != idle && i != waiting && i < guests {
			seconds += n / 100 // of USER_HZ, which is 100 on every Linux
		}
	}
	return seconds
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
			for name, body := range map[string]any{workflows.TrainRunName: workflows.TrainRun,
				workflows.TrainStepName: workflows.TrainStep, workflows.RolloutShardName: workflows.RolloutShard} {
				w.RegisterWorkflowWithOptions(body, workflow.RegisterOptions{Name: name})
			}
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

func (d *delays) figures(took time.Duration) (f figures) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f.Activities = float64(len(d.late)) / took.Seconds()
	f.Steps = float64(d.steps) / took.Seconds()
	f.Beats = float64(d.open) / beats.Seconds()
	if len(d.late) == 0 {
		return f
	}
	slices.Sort(d.late)
	at := func(share float64) float64 {
		return float64(d.late[int(share*float64(len(d.late)-1))]) / float64(time.Millisecond)
	}
	f.P50, f.P99 = at(0.5), at(0.99)
	return f
}
