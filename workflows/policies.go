package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// stepsPerHistory bounds TrainRun's history: about 25 events a step, far below the 4,096 events
// at which Temporal suggests to continue as new.
const stepsPerHistory = 20

// checksPerHistory bounds the history of a check: about 6 events a step.
const checksPerHistory = 400

// sideBySide is how many activities of a replay or check are in flight at once.
const sideBySide = 8

// heartbeat is how long a silent worker counts as alive: every activity heartbeats each two
// seconds (activities/run.go), so a killed worker's stage is retried this soon.
const heartbeat = 10 * time.Second

// homecoming is how long a host may take to begin a stage on its own queue. Its worker takes at once whatever comes there, so
// that a host which does not is gone.
const homecoming = 30 * time.Second

// waitAtHome is what a stage gets more there: stages of a run that come side by side wait for its engine in turn.
const waitAtHome = time.Hour

// retryRanks has a place among an engine's hosts taken by another one, for as long as the engine waits: its end calls the rest
// off.
var retryRanks = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1.5, MaximumInterval: 5 * time.Second}

// ranksLimit bounds how long a host serves an engine; one that is used goes on under its next stage.
const ranksLimit = 30 * 24 * time.Hour

// retryPassing retries what may pass: a lost server, a lost worker, a full disk. What cannot
// pass by itself is listed and fails at once.
var retryPassing = &temporal.RetryPolicy{
	InitialInterval:        500 * time.Millisecond,
	BackoffCoefficient:     2,
	MaximumInterval:        15 * time.Second,
	MaximumAttempts:        6,
	NonRetryableErrorTypes: []string{wire.FailBadInput, wire.FailCorrupt, wire.FailRefused, wire.FailNonFinite},
}

// policy is one activity's queue and time limit. ScheduleToStart stays unlimited: a worker that
// is away for an hour delays a run and does not fail it.
type policy struct {
	queue string
	limit time.Duration // StartToClose, of one attempt
}

// policies names every time-out. Limits are several times what the largest shard took.
var policies = map[string]policy{
	wire.PrepareRun:           {QueueCPU, time.Minute},
	wire.AmendRecipe:          {QueueCPU, time.Minute},
	wire.WarmStart:            {QueueGPU, time.Hour},
	wire.SelectPrompts:        {QueueCPU, time.Minute},
	wire.GenerateRollouts:     {QueueRollout, 30 * time.Minute},
	wire.ExecuteToolCalls:     {QueueSandbox, 30 * time.Minute},
	wire.AssembleTrajectories: {QueueCPU, 5 * time.Minute},
	wire.GradeAnswers:         {QueueSandbox, 30 * time.Minute},
	wire.ScoreRewards:         {QueueCPU, 10 * time.Minute},
	wire.CommitStages:         {QueueCPU, time.Minute},
	wire.Resample:             {QueueCPU, 5 * time.Minute},
	wire.ComputeTokenOutputs:  {QueueGPU, time.Hour},
	wire.ComputeAdvantages:    {QueueCPU, 10 * time.Minute},
	wire.UpdateReplayBuffer:   {QueueCPU, 10 * time.Minute},
	wire.UpdatePolicy:         {QueueGPU, time.Hour},
	wire.PublishPolicy:        {QueueRollout, 10 * time.Minute},
	wire.Evaluate:             {QueueRollout, time.Hour},
	wire.RecordTimings:        {QueueCPU, time.Minute},
	wire.ImportTrajectories:   {QueueCPU, 10 * time.Minute},
	wire.CompareCalculator:    {QueueCPU, 10 * time.Minute},
	wire.PrepareReplay:        {QueueCPU, 10 * time.Minute},
	wire.CompareReplay:        {QueueCPU, time.Minute},
	wire.PrepareCheck:         {QueueCPU, time.Minute},
	wire.CheckReplay:          {QueueCPU, 10 * time.Minute},
	wire.FindHome:             {QueueGPU, time.Minute},
}

// maxTimeout bounds the time limit that a person can give an attempt.
const maxTimeout = 7 * 24 * time.Hour

// timeoutsKey is where a context carries the time limits that a person gave.
type timeoutsKey struct{}

// withTimeouts gives activities other time limits, in seconds by their names.
func withTimeouts(ctx workflow.Context, timeouts map[string]float64) workflow.Context {
	return workflow.WithValue(ctx, timeoutsKey{}, timeouts)
}

// timeoutsOf is the inverse of withTimeouts.
func timeoutsOf(ctx workflow.Context) map[string]float64 {
	timeouts, _ := ctx.Value(timeoutsKey{}).(map[string]float64)
	return timeouts
}

// start schedules an activity under its policy; summary is what the UI shows beside it.
func start(ctx workflow.Context, name, summary string, input any) workflow.Future {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options(ctx, name, summary)), name, input)
}

// startAt is start on a host's own queue, for as long as the host takes what comes there.
func startAt(ctx workflow.Context, host, name, summary string, input any) workflow.Future {
	o := options(ctx, name, summary)
	o.TaskQueue, o.ScheduleToStartTimeout = wire.HostQueue(host), homecoming
	if timeoutsOf(ctx)[name] == 0 { // else a person knows
		o.StartToCloseTimeout += waitAtHome
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}

// options are an activity's under its policy.
func options(ctx workflow.Context, name, summary string) workflow.ActivityOptions {
	p := policies[name]
	if limit := timeoutsOf(ctx)[name]; limit > 0 {
		p.limit = time.Duration(limit * float64(time.Second))
	}
	return workflow.ActivityOptions{
		TaskQueue:           p.queue,
		StartToCloseTimeout: p.limit,
		HeartbeatTimeout:    heartbeat,
		RetryPolicy:         retryPassing,
		Summary:             summary,
	}
}

// call runs an activity and waits for its result.
func call[R any](ctx workflow.Context, name, summary string, input any) (R, error) {
	var out R
	err := start(ctx, name, summary, input).Get(ctx, &out)
	return out, err
}

// scoped returns the scope of a step.
func scoped(run string, step int, p wire.Prepared) wire.Scope {
	return wire.Scope{Run: run, Step: step, Config: p.Manifest}
}
