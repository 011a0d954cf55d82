package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/once"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// quickstartFigures are those of the recipe quickstart, cut short, through the real workflows and activities: in the
// SDK's own environment in the place of a server, over a store in memory.
type quickstartFigures struct {
	Set       []string               `json:"set"`
	Tier      string                 `json:"sandbox"`
	Engine    string                 `json:"engine"`
	Steps     int                    `json:"steps"`
	Seconds   float64                `json:"seconds"`
	WarmStart float64                `json:"warm_start_seconds"`
	Warm      wire.EvaluationSummary `json:"warm"`
	Final     wire.EvaluationSummary `json:"final"`
	Lines     []workflows.StepLine   `json:"lines"` // of the last steps
	Usage     torch.Usage            `json:"usage"`
}

// quickstartSet cuts the recipe for the time that a part has.
func quickstartSet(l *lab) []string {
	out := []string{"engine.kind=torch", "sandbox.min_tier=rlimits", "evaluation.greedy=false", "evaluation.samples=1"}
	if !l.onGPU() {
		out = append(out, "engine.checkpointing=on") // as the other parts have it, which share the engine
	}
	if l.o.short || !l.onGPU() {
		return append(out, "steps=1", "warm_start.steps=20", "evaluation.problems=6", "rollout.prompts=4", "rollout.shard_groups=2")
	}
	return append(out, "steps=15")
}

// quickstart trains a small policy on the device, from its warm start to its last evaluation.
func quickstart(ctx context.Context, l *lab) (_ figures, err error) {
	maker := &torchMaker{lab: l}
	deps, tier, opened, err := l.stages(maker)
	defer func() { err = errors.Join(err, opened.Close()) }()
	if err != nil {
		return nil, err
	}
	out := &quickstartFigures{Set: quickstartSet(l), Tier: string(tier)}
	env := environment(deps, l.o.limit)
	broke := &lastError{}
	env.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, err error) {
		if err != nil {
			broke.set(fmt.Errorf("%s: %w", info.ActivityType.Name, err))
		}
	})
	began := time.Now()
	result, err := trainIn(ctx, env, workflows.TrainRunInput{Run: "gpu-check", Recipe: "quickstart", Set: out.Set})
	out.Seconds = time.Since(began).Seconds()
	if maker.engine != nil {
		out.Usage = maker.engine.Usage().Since(maker.before)
	}
	if value, asked := env.QueryWorkflow(workflows.QueryProgress); asked == nil {
		var p workflows.Progress
		if value.Get(&p) == nil {
			out.Lines, out.WarmStart = p.Lines, p.WarmStartSeconds
		}
	}
	if err != nil {
		return out, errors.Join(err, broke.get())
	}
	out.Steps, out.Warm, out.Final, out.Engine = result.Steps, result.Warm, result.Final, result.Machine.Engine
	if out.Usage.Trained == 0 || out.Usage.Generated == 0 {
		return out, errors.New("the run is done, and the engine has not trained and sampled")
	}
	return out, nil
}

// lastError is what an activity ended with last; it is set by the environment's goroutines.
type lastError struct{ err atomic.Pointer[error] }

func (l *lastError) set(err error) { l.err.Store(&err) }

func (l *lastError) get() error {
	if e := l.err.Load(); e != nil {
		return *e
	}
	return nil
}

// environment is the SDK's for one workflow.
func environment(deps *activities.Deps, limit time.Duration) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(limit)
	env.RegisterWorkflowWithOptions(workflows.TrainRun, workflow.RegisterOptions{Name: workflows.TrainRunName})
	env.RegisterWorkflowWithOptions(workflows.TrainStep, workflow.RegisterOptions{Name: workflows.TrainStepName})
	deps.Register(env)
	return env
}

// trainIn runs the workflow. The environment panics where nothing moves any more, as when the run is parked.
func trainIn(ctx context.Context, env *testsuite.TestWorkflowEnvironment, in workflows.TrainRunInput) (out workflows.TrainRunResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the workflow's environment gave up: %v", p)
		}
	}()
	defer context.AfterFunc(ctx, env.CancelWorkflow)()
	env.ExecuteWorkflow(workflows.TrainRunName, in)
	if err := env.GetWorkflowError(); err != nil {
		return out, err
	}
	return out, env.GetWorkflowResult(&out)
}

// closers are closed in the reverse order of their opening.
type closers []io.Closer

func (c closers) Close() (err error) {
	for i := len(c) - 1; i >= 0; i-- {
		err = errors.Join(err, c[i].Close())
	}
	return err
}

// stages opens what a worker's activities share; what is opened is closed by the caller, also after an error.
func (l *lab) stages(maker activities.Torch) (deps *activities.Deps, tier sandbox.Tier, opened closers, err error) {
	scratch := filepath.Join(l.dir, "quickstart")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, "", opened, err
	}
	// The sandbox finds an interpreter of its own, and makes folders of its own: torch's interpreter, and ours, may lie
	// where a call's user cannot enter.
	box, err := zygote.Open(zygote.Options{MinTier: sandbox.TierRlimits})
	if err != nil {
		return nil, "", opened, err
	}
	opened = append(opened, box)
	small, err := cpu.Open(cpu.Options{})
	if err != nil {
		return nil, "", opened, err
	}
	opened = append(opened, small)
	tier = sandbox.Tier(box.Isolation())
	code := sha256.Sum256([]byte(commit))
	deps, err = activities.New(activities.Options{
		Store: mem.New(), Trainer: small, Rollout: small, Torch: maker, Sandbox: once.New(box), Tier: tier,
		Code: hex.EncodeToString(code[:]), Scratch: scratch,
	})
	if err != nil {
		return nil, "", opened, err
	}
	return deps, tier, append(opened, deps), nil
}

// torchMaker makes the lab's engine the run's.
type torchMaker struct {
	lab    *lab
	engine *torch.Engine
	before torch.Usage // of parts that had the engine before
}

func (m *torchMaker) Offer(context.Context, *recipes.Recipe) (activities.Offer, error) {
	device := "the processor"
	if m.lab.onGPU() && len(m.lab.machine.GPUs) > 0 {
		device = m.lab.machine.GPUs[0]
	}
	return activities.Offer{GPU: m.lab.onGPU(), Device: device}, nil
}

// Devices is 0: there is one engine, whatever it runs on.
func (m *torchMaker) Devices() int { return 0 }

// Serve refuses: nobody else is here.
func (m *torchMaker) Serve(context.Context, wire.RanksInput, activities.Room) error {
	return activities.ErrNoPlace
}

// Open gives the recipe's engine, which stays the lab's.
func (m *torchMaker) Open(ctx context.Context, r *recipes.Recipe) (policy.Engine, error) {
	e := r.Engine
	s := settings{dtype: e.Dtype, deterministic: e.Deterministic, checkpointing: e.Checkpointing}
	if s.dtype == "auto" {
		s.dtype = m.lab.dtype()
	}
	var err error
	if m.engine, err = m.lab.withEngine(ctx, s); err != nil {
		return nil, err
	}
	m.before = m.engine.Usage()
	return lent{m.engine}, nil
}

// lent is an engine that whoever has it does not close.
type lent struct{ policy.Engine }

func (lent) Close() error { return nil }

func (f *quickstartFigures) rows() []row {
	if f.Steps == 0 {
		return nil // it is not done
	}
	return []row{
		{what: "engine, sandbox", value: f.Engine + ", " + f.Tier},
		{what: "seconds", value: fmt.Sprintf("%.0f in all, %.0f of the warm start", f.Seconds, f.WarmStart)},
		{what: "success, warm start", value: percent(f.Warm)},
		{what: "success after " + strconv.Itoa(f.Steps) + " steps", value: percent(f.Final)},
		{what: "trained, sampled", value: fmt.Sprintf("%d and %d tokens", f.Usage.Trained, f.Usage.Generated)},
	}
}

func percent(e wire.EvaluationSummary) string {
	return fmt.Sprintf("%.1f%% of %d problems", 100*e.Success, e.N)
}
