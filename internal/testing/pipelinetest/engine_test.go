package pipelinetest_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// The kind of engine of CONTRIBUTING.md: it samples and trains, and returns fixed numbers. In the tree, the declaration
// is an entry of engines.All and what opens it an entry of enginepool.Openings.

var fixedKind = engines.Kind{Name: "fixed", Doc: "every number is fixed", Fields: []string{"deterministic"},
	Leased: true}

// The numbers of the engine.
const (
	fixedLogProb = -0.75
	fixedEntropy = 0.5
	fixedNorm    = 2.0
)

// fixed generates the stop token alone. A step counts, and leaves the weights as they are.
type fixed struct {
	mu     sync.Mutex
	models map[policy.Role]*fixedModel
	kept   policy.Kept
	closed bool
}

type fixedModel struct {
	checkpoint *checkpoint.Checkpoint
	digest     string
	steps      int64
}

// model returns the model of a role. The caller holds the lock.
func (f *fixed) model(ctx context.Context, role policy.Role) (*fixedModel, error) {
	switch m := f.models[role]; {
	case f.closed:
		return nil, policy.ErrLost
	case m == nil:
		return nil, fmt.Errorf("%w: %s", policy.ErrNotLoaded, role)
	default:
		return m, ctx.Err()
	}
}

// Load reads the weights, which Save writes again.
func (f *fixed) Load(_ context.Context, role policy.Role, dir string, _ bool) error {
	c, err := checkpoint.Read(dir, false)
	if err != nil {
		return err
	}
	digest, err := checkpoint.Digest(dir)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.models[role] = &fixedModel{checkpoint: c, digest: digest}
	return nil
}

func (f *fixed) Save(ctx context.Context, role policy.Role, dir string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, err := f.model(ctx, role)
	if err != nil {
		return "", err
	}
	m.digest, err = checkpoint.Write(dir, m.checkpoint)
	return m.digest, err
}

func (f *fixed) Generate(ctx context.Context, req policy.GenerateRequest) (out policy.Generated, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err = f.model(ctx, req.Role); err != nil {
		return out, err
	}
	for range req.Prefixes {
		out.Tokens = append(out.Tokens, []int32{req.Stop[0]})
		out.LogProbs = append(out.LogProbs, []float32{fixedLogProb})
		out.Entropies = append(out.Entropies, []float32{fixedEntropy})
		out.Finish = append(out.Finish, policy.FinishStop)
	}
	return out, nil
}

func (f *fixed) Forward(ctx context.Context, req policy.ForwardRequest) (out policy.TokenOutputs, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err = f.model(ctx, req.Role); err != nil {
		return out, err
	}
	for _, s := range req.Sequences {
		logProbs, entropies := make([]float32, len(s)), make([]float32, len(s))
		for t := 1; t < len(s); t++ {
			logProbs[t], entropies[t] = fixedLogProb, fixedEntropy
		}
		out.LogProbs, out.Entropies = append(out.LogProbs, logProbs), append(out.Entropies, entropies)
	}
	f.kept++
	out.Kept = f.kept
	return out, nil
}

func (f *fixed) Backward(context.Context, policy.Role, policy.Kept, policy.Cotangents) error {
	return nil
}

func (f *fixed) Discard(context.Context, policy.Role) error { return nil }

func (f *fixed) Step(ctx context.Context, role policy.Role, o policy.StepOptions) (policy.StepStats, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, err := f.model(ctx, role)
	if err != nil {
		return policy.StepStats{}, err
	}
	m.steps++
	return policy.StepStats{GradNorm: fixedNorm, Clipped: o.ClipNorm < fixedNorm, Step: m.steps}, o.Validate()
}

func (f *fixed) State(ctx context.Context, role policy.Role) (policy.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, err := f.model(ctx, role)
	if err != nil {
		return policy.State{}, err
	}
	return policy.State{Digest: m.digest, Step: m.steps, Params: m.checkpoint.Shape.Params()}, nil
}

func (f *fixed) Capabilities() policy.Capabilities {
	return policy.Capabilities{TokenIDs: true, LogProbs: true, Entropy: policy.EntropyFull, Temperature: true,
		Greedy: true, RowSeeds: true, BatchInvariant: true, Weights: policy.WeightsLoad}
}

func (f *fixed) Describe() policy.Description { return policy.Description{Device: "fixed", Threads: 1} }

func (f *fixed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// A kind of engine needs its declaration and what opens it: then a recipe can name it, and runs train and sample there.
func TestAddAnEngineKind(t *testing.T) {
	before := engines.All
	engines.All = append(engines.All[:len(before):len(before)], fixedKind)
	var opened []*fixed
	open := func(*enginepool.Pool, context.Context, *recipes.Recipe) (policy.Engine, error) {
		opened = append(opened, &fixed{models: map[policy.Role]*fixedModel{}})
		return opened[len(opened)-1], nil
	}
	enginepool.Openings[fixedKind.Name] = open
	t.Cleanup(func() {
		engines.All = before
		delete(enginepool.Openings, fixedKind.Name)
	})
	recipe, err := os.ReadFile("../../../test/e2e/testdata/tiny.yaml")
	require.NoError(t, err)
	set := []string{"engine={kind: fixed}", "steps=2", "warm_start.steps=0", "warm_start.optimizer.warmup_steps=0",
		"rollout.prompts=2", "rollout.samples_per_prompt=2", "resample={}", "evaluation.problems=3"}
	for _, mode := range []string{recipes.ModeInterleaved, recipes.ModeStaged} {
		objects := mem.New()
		deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
		out, err := pipelinetest.Run[workflows.TrainRunResult](pipelinetest.Environment(deps), workflows.TrainRunName,
			workflows.TrainRunInput{Run: mode, RecipeYAML: string(recipe), Set: append(set, "rollout.mode="+mode)})
		require.NoError(t, err)
		require.NotEmpty(t, out.Policy.Digest)
		require.NoError(t, deps.Close())
		requireFixed(t, commit.New(objects), mode)
	}
	require.Len(t, opened, 2, "an engine for each run")
	require.True(t, opened[0].closed && opened[1].closed)

	_, err = recipes.ParseCommitted("tiny.yaml", recipe, append(set, "engine.devices=2"))
	require.ErrorContains(t, err, "engine.devices=2: cannot be combined with engine.kind fixed")
}

// requireFixed requires that the engine's numbers are those of a run's record.
func requireFixed(t *testing.T, record *commit.Writer, run string) {
	t.Helper()
	m, _, _, err := record.Lookup(t.Context(), schema.AtInit(run, schema.StagePrepare))
	require.NoError(t, err)
	require.Equal(t, fixedKind.Name, m.Note[schema.NoteEngine])
	for step := 1; step <= 2; step++ {
		turns := rowsOf[schema.TurnRow](t, record, run, step, schema.StageRollout)
		require.Len(t, turns, 4)
		for _, r := range turns {
			last := len(r.LogProbs) - 1
			require.EqualValues(t, fixedLogProb, r.LogProbs[last])
			require.EqualValues(t, fixedEntropy, r.Entropies[last])
		}
		updates := rowsOf[schema.UpdateRow](t, record, run, step, schema.StageUpdate)
		require.Len(t, updates, 1)
		require.EqualValues(t, step, updates[0].OptimizerStep)
		require.EqualValues(t, fixedNorm, *updates[0].GradNorm)
		require.InDelta(t, fixedEntropy, *updates[0].Entropy, 1e-9)
	}
}

// rowsOf reads a table of a step's stage.
func rowsOf[R schema.Row](t *testing.T, record *commit.Writer, run string, step int, stage string) []R {
	t.Helper()
	head, _, _, err := record.Head(t.Context(), run, schema.At(run, step, stage).Step)
	require.NoError(t, err)
	var manifests []schema.Manifest
	for _, ref := range head.Stages[stage] {
		m, err := record.Read(t.Context(), ref)
		require.NoError(t, err)
		manifests = append(manifests, m)
	}
	rows, err := commit.Rows[R](t.Context(), record, manifests...)
	require.NoError(t, err)
	return rows
}
