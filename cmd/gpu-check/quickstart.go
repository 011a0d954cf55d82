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

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/once"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// quickstartFigures are the figures of a short run of the recipe quickstart through the real workflows and activities,
// in the SDK's test environment instead of a server, over a store in memory.
type quickstartFigures struct {
	Set       []string              `json:"set"`
	Tier      string                `json:"sandbox"`
	Engine    string                `json:"engine"`
	Steps     int                   `json:"steps"`
	Seconds   float64               `json:"seconds"`
	WarmStart float64               `json:"warm_start_seconds"`
	Warm      api.EvaluationSummary `json:"warm"`
	Final     api.EvaluationSummary `json:"final"`
	Lines     []workflows.StepLine  `json:"lines"` // of the last steps
	Usage     torch.Usage           `json:"usage"`
}

// quickstartSet shortens the recipe to fit a part's time limit.
func quickstartSet(l *lab) []string {
	out := []string{"engine.kind=torch", "sandbox.min_tier=rlimits", "evaluation.greedy=false", "evaluation.samples=1"}
	if !l.onGPU() {
		out = append(out, "engine.checkpointing=on") // like the other parts, which share the engine
	}
	if l.o.short || !l.onGPU() {
		return append(
			out, "steps=1", "warm_start.steps=20", "evaluation.problems=6", "rollout.prompts=4",
			"rollout.shard_groups=2",
		)
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

// lastError is the last error of an activity. The environment's goroutines set it.
type lastError struct{ err atomic.Pointer[error] }

func (l *lastError) set(err error) { l.err.Store(&err) }

func (l *lastError) get() error {
	if e := l.err.Load(); e != nil {
		return *e
	}
	return nil
}

// environment is the SDK's test environment for one workflow.
func environment(deps *activities.Deps, limit time.Duration) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(limit)
	workflows.Register(env)
	deps.Register(env)
	return env
}

// trainIn runs the workflow. The environment panics if nothing can proceed, for example because the run is parked.
func trainIn(
	ctx context.Context, env *testsuite.TestWorkflowEnvironment, in workflows.TrainRunInput,
) (out workflows.TrainRunResult, err error) {
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

// stages opens what a worker's activities share. The caller closes it, also after an error.
func (l *lab) stages(maker enginepool.Torch) (deps *activities.Deps, tier sandbox.Tier, opened closers, err error) {
	scratch := filepath.Join(l.dir, "quickstart")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, "", opened, err
	}
	// The sandbox finds its own interpreter and makes its own folders, because a call's user may not be able to enter
	// the folders of torch's interpreter and ours.
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

// torchMaker lends the lab's engine to the run.
type torchMaker struct {
	lab    *lab
	engine *torch.Engine
	before torch.Usage // of earlier parts
}

func (m *torchMaker) Offer(context.Context, *recipes.Recipe) (enginepool.Offer, error) {
	device := "the processor"
	if m.lab.onGPU() && len(m.lab.machine.GPUs) > 0 {
		device = m.lab.machine.GPUs[0]
	}
	return enginepool.Offer{GPU: m.lab.onGPU(), Device: device, Capabilities: torch.Capabilities()}, nil
}

// Devices is 0: there is one engine, whatever it runs on.
func (m *torchMaker) Devices() int { return 0 }

// Serve refuses: there is no other host.
func (m *torchMaker) Serve(context.Context, gang.Invitation, enginepool.Room) error {
	return gang.ErrElsewhere
}

// Open returns an engine for the recipe, which the lab keeps.
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

// lent is an engine that its user does not close.
type lent struct{ policy.Engine }

func (lent) Close() error { return nil }

func (f *quickstartFigures) rows() []row {
	if f.Steps == 0 {
		return nil // the part has not finished
	}
	return []row{
		{what: "engine, sandbox", value: f.Engine + ", " + f.Tier},
		{what: "seconds", value: fmt.Sprintf("%.0f in all, %.0f of the warm start", f.Seconds, f.WarmStart)},
		{what: "success, warm start", value: percent(f.Warm)},
		{what: "success after " + strconv.Itoa(f.Steps) + " steps", value: percent(f.Final)},
		{what: "trained, sampled", value: fmt.Sprintf("%d and %d tokens", f.Usage.Trained, f.Usage.Generated)},
	}
}

func percent(e api.EvaluationSummary) string {
	return fmt.Sprintf("%.1f%% of %d problems", 100*e.Success, e.N)
}
