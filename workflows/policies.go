package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// stepsPerHistory bounds TrainRun's history: a step takes about 25 events, so the history stays far below the 4,096
// events at which Temporal suggests to continue as new.
const stepsPerHistory = 20

// checksPerHistory bounds the history of a check, which takes about 6 events a step.
const checksPerHistory = 400

// sideBySide is how many activities of a check, an evaluation or an engine run at once: they share few workers.
const sideBySide = 8

// openShards is how many shards of a step are workflows or activities at once: half of Temporal's recommendation, a
// quarter of its limit.
const openShards = 500

// These bound the start of a child workflow while a child of an earlier execution is open under the same id. The
// server terminates the old child together with its parent, which takes moments; after a minute, another workflow
// must be using the id.
const (
	mostChildStarts  = 60
	childStartsApart = time.Second
)

// heartbeat is how long a silent worker counts as alive. Activities heartbeat every two seconds
// (activities/stage/progress.go), so Temporal retries the stage of a killed worker this soon.
const heartbeat = 6 * time.Second

// startAtHome is how long a host may take to start a stage from its own queue. A live worker takes such a stage at
// once, so a host that does not is gone.
const startAtHome = 30 * time.Second

// waitAtHome extends the time limit of a stage on its home: concurrent stages of a run wait for the engine in turn.
const waitAtHome = time.Hour

// retryRanks lets another host take a free place among an engine's hosts, for as long as the engine waits. When the
// engine ends, the remaining attempts are cancelled.
var retryRanks = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1.5,
	MaximumInterval: 5 * time.Second}

// retryTransient retries failures that may pass: a lost server, a lost worker, a full disk. The listed kinds cannot
// pass without a change, so they fail at once.
var retryTransient = &temporal.RetryPolicy{
	InitialInterval:        500 * time.Millisecond,
	BackoffCoefficient:     2,
	MaximumInterval:        15 * time.Second,
	MaximumAttempts:        6,
	NonRetryableErrorTypes: []string{api.FailBadInput, api.FailCorrupt, api.FailRefused, api.FailNonFinite},
}

// retries holds the retry policies of the classes that activities declare.
var retries = map[stages.Retry]*temporal.RetryPolicy{stages.Transient: retryTransient, stages.WhileWanted: retryRanks}

// LongestStage is how long an attempt of a stage may take from its first put to its commit, unless a person has set
// another limit (`unpark --timeout`).
func LongestStage() (longest time.Duration) {
	for _, a := range stages.Activities() {
		limit := a.Limit
		if a.Queue == stages.Rollout || a.Queue == stages.GPU { // they may run at home
			limit += waitAtHome
		}
		if !a.Joint && a.Retry != stages.WhileWanted {
			longest = max(longest, limit)
		}
	}
	return longest
}

// maxTimeout bounds the time limit that a person can set for an attempt.
const maxTimeout = 7 * 24 * time.Hour

// limits are time limits that a person set, in seconds by activity name. Other activities have their declared ones.
type limits map[string]float64

// start schedules an activity with its declared options; the UI shows summary next to it.
func start(ctx workflow.Context, l limits, name, summary string, input any) workflow.Future {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options(l, name, summary)), name, input)
}

// startAt is start on a host's own queue. It fails if the host does not start the activity in time.
func startAt(ctx workflow.Context, l limits, host, name, summary string, input any) workflow.Future {
	o := options(l, name, summary)
	o.TaskQueue, o.ScheduleToStartTimeout = api.HostQueue(host), startAtHome
	if l[name] == 0 { // otherwise a person has set the limit
		o.StartToCloseTimeout += waitAtHome
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}

// options returns the options that an activity declares. ScheduleToStart has no limit: if a worker is away for an hour,
// the run waits and does not fail.
func options(l limits, name, summary string) workflow.ActivityOptions {
	a := stages.ActivityOf(name)
	if limit := l[name]; limit > 0 {
		a.Limit = time.Duration(limit * float64(time.Second))
	}
	return workflow.ActivityOptions{
		TaskQueue:           a.Queue,
		StartToCloseTimeout: a.Limit,
		HeartbeatTimeout:    heartbeat,
		RetryPolicy:         retries[a.Retry],
		Summary:             summary,
	}
}

// call runs an activity and waits for its result.
func call[R any](ctx workflow.Context, l limits, name, summary string, input any) (R, error) {
	var out R
	err := start(ctx, l, name, summary, input).Get(ctx, &out)
	return out, err
}

// scoped returns the scope of a step.
func scoped(run string, step int, p api.Prepared) api.Scope {
	return api.Scope{Run: run, Step: step, Config: p.Manifest}
}
