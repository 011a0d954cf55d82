// Package pipelinetest runs the real pipeline in tests: the real workflows and activities, the CPU engine and Python
// processes, in Temporal's test environment and over a store that the test provides.
package pipelinetest

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// Wrap decorates or replaces the trainer's engine, the engine that generates and the sandbox executor. A nil field
// changes nothing.
type Wrap struct {
	Trainer func(policy.Engine) policy.Engine
	Rollout func(policy.Engine) policy.Engine
	Sandbox func(sandbox.Executor) sandbox.Executor
	Fetch   dataset.Fetch // opens remote files of tasks
	Models  string        // folder of models
	Bucket  func(name string) (store.Store, error)
}

// interpreters is the sandbox of a whole test binary, with which its processes end: to start one takes half a second of
// a processor, which most tests would spend on nothing else.
var interpreters = sync.OnceValues(func() (*zygote.Executor, error) {
	return zygote.Open(zygote.Options{Workers: 2, MinTier: sandbox.TierLandlock})
})

// Deps makes the shared state of a worker's activities and closes it when the test ends.
func Deps(t *testing.T, objects store.Store, wrap Wrap) *stage.Worker {
	t.Helper()
	engine := func() policy.Engine {
		e, err := cpu.Open(cpu.Options{Threads: 2})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		return e
	}
	python, err := interpreters()
	require.NoError(t, err)
	trainer, rollout, executor := engine(), engine(), sandbox.Executor(python)
	if wrap.Trainer != nil {
		trainer = wrap.Trainer(trainer)
	}
	if wrap.Rollout != nil {
		rollout = wrap.Rollout(rollout)
	}
	if wrap.Sandbox != nil {
		executor = wrap.Sandbox(executor)
	}
	deps, err := activities.New(stage.Options{
		Store: objects, Trainer: trainer, Rollout: rollout,
		Sandbox: executor, Tier: sandbox.Tier(python.Isolation()),
		Code: strings.Repeat("c", 64), Scratch: t.TempDir(), Fetch: wrap.Fetch,
		Models: wrap.Models, Bucket: wrap.Bucket,
		Score: servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 2}) }),
	})
	require.NoError(t, err)
	return deps
}

// Environment returns Temporal's test environment for one workflow, with all workflows and the activities of deps.
func Environment(deps *stage.Worker) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(10 * time.Minute)
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{&patient{}},
		// By default a workflow that a busy machine does not run for a second counts as deadlocked.
		DeadlockDetectionTimeout: time.Minute,
	})
	workflows.Register(env)
	activities.Register(env, deps)
	return env
}

// Run runs a workflow to completion and returns its result. A run that parks waits for an update that no test sends;
// the error then says why it parked.
func Run[R any](env *testsuite.TestWorkflowEnvironment, name string, in any) (R, error) {
	var out R
	env.ExecuteWorkflow(name, in)
	err := env.GetWorkflowError()
	if err == nil {
		return out, env.GetWorkflowResult(&out)
	}
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) {
		return out, err
	}
	var p workflows.Progress
	if answer, queryErr := env.QueryWorkflow(workflows.QueryProgress); queryErr == nil && answer.Get(&p) == nil &&
		p.Parked != nil {
		return out, fmt.Errorf("parked: %+v: %w", p.Parked.Failures, err)
	}
	return out, err
}

// patient lets activities be silent for longer than the workflows allow. Temporal's test environment does not retry an
// activity after a missed heartbeat, and the SDK sends one only every 8 of the 10 seconds that the workflows allow: on
// a busy machine a run parked.
type patient struct {
	interceptor.WorkerInterceptorBase
}

type patientInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

type patientOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (*patient) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &patientInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

func (i *patientInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&patientOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}})
}

func (o *patientOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	return o.Next.ExecuteActivity(workflow.WithHeartbeatTimeout(ctx, 10*time.Minute), name, args...)
}
