// Package lanetest runs the real lane in tests: the real workflows and activities, the CPU engine
// and Python processes, in Temporal's test environment and over a store of the test's.
package lanetest

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// Wrap puts something around what trains, what generates and what runs tool calls, or in its place; nil leaves it as it is.
type Wrap struct {
	Trainer func(policy.Engine) policy.Engine
	Rollout func(policy.Engine) policy.Engine
	Sandbox func(sandbox.Executor) sandbox.Executor
}

// Deps opens what a worker's activities share; the test's end closes it.
func Deps(t *testing.T, objects store.Store, wrap Wrap) *activities.Deps {
	t.Helper()
	engine := func() policy.Engine {
		e, err := cpu.Open(cpu.Options{Threads: 2})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		return e
	}
	python, err := zygote.Open(zygote.Options{Workers: 2, Dir: t.TempDir(), MinTier: sandbox.TierLandlock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, python.Close()) })
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
	deps, err := activities.New(activities.Options{
		Store: objects, Trainer: trainer, Rollout: rollout, Sandbox: executor, Tier: sandbox.Tier(python.Isolation()), Code: strings.Repeat("c", 64), Scratch: t.TempDir(),
	})
	require.NoError(t, err)
	return deps
}

// Environment is Temporal's for one workflow, which knows all workflows and the activities of deps.
func Environment(deps *activities.Deps) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(10 * time.Minute)
	for name, run := range map[string]any{
		workflows.TrainRunName: workflows.TrainRun, workflows.TrainStepName: workflows.TrainStep,
		workflows.ReprocessRunName: workflows.ReprocessRun, workflows.ReplayStageName: workflows.ReplayStage, workflows.ServeRanksName: workflows.ServeRanks,
	} {
		env.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
	}
	deps.Register(env)
	return env
}

// Run runs a workflow to its end.
func Run[R any](env *testsuite.TestWorkflowEnvironment, name string, in any) (R, error) {
	var out R
	env.ExecuteWorkflow(name, in)
	if err := env.GetWorkflowError(); err != nil {
		return out, err
	}
	return out, env.GetWorkflowResult(&out)
}
