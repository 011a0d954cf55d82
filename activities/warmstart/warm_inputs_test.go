package warmstart

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

var updateWarm = flag.Bool("update-warm-start", false, "write testdata/warm_start.json again")

// warmGolden is a recorded small warm start.
type warmGolden struct {
	Demonstrations int               `json:"demonstrations_version"`
	Cloning        int               `json:"cloning_version"`
	Tokens         string            `json:"demonstrations"` // digest of the demonstrations' tokens and masks
	Checkpoints    map[string]string `json:"checkpoints"`    // checkpoint digests by machine.blas, with one thread
}

// noSandbox refuses every call: demonstrations without broken code need no sandbox, because their results are
// computed in process.
type noSandbox struct{ sandbox.Executor }

func (noSandbox) Run(context.Context, []sandbox.Call) ([]sandbox.Result, error) {
	return nil, errors.New("a demonstration needed a sandbox")
}

func tinyWarmRecipe() *recipes.Recipe {
	r := &recipes.Recipe{Seed: 7}
	r.Environment.Name = "calc"
	r.Policy = recipes.Policy{Layers: 1, Hidden: 16, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, RopeBase: 200,
		MaxPositions: 256}
	r.WarmStart = recipes.WarmStart{Levels: []int{2, 3}, Steps: 3, Batch: 4,
		Teacher: recipes.Teacher{WrongOrder: 0.3, MissingPrint: 0.2, NoTool: 0.2, WrongCopy: 0.3}}
	r.WarmStart.Optimizer = recipes.Optimizer{LR: 1e-3, ClipNorm: 1,
		MicrobatchTokens: 1024, WarmupSteps: 1, Decay: "cosine"}
	r.Rollout = recipes.Rollout{Temperature: 1, MaxTurns: 3, MaxTurnTokens: 64, MaxTokens: 192, MaxToolTextBytes: 256}
	r.Sandbox = recipes.Sandbox{CPUSeconds: 1, WallSeconds: 20, MemoryMB: 256, OutputKB: 64}
	return r
}

// TestWarmStartVersions makes a small warm start and compares it with a recorded one. If demonstrations or weights
// differ, the version in warm_inputs.go must rise; otherwise a rebuilt program would reuse warm starts that it would
// not make. Then run
//
//	go test ./activities -run TestWarmStartVersions -update-warm-start
func TestWarmStartVersions(t *testing.T) {
	got, blas := makeTinyWarmStart(t)
	path := filepath.Join("testdata", "warm_start.json")
	text, err := os.ReadFile(path)
	want := warmGolden{}
	if !*updateWarm || !os.IsNotExist(err) {
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &want))
	}
	if *updateWarm {
		updateWarmGolden(t, path, want, got, blas)
		return
	}
	require.Equal(t, [2]int{want.Demonstrations, want.Cloning}, [2]int{got.Demonstrations, got.Cloning},
		"a version has changed: -update-warm-start")
	require.Equal(t, want.Tokens, got.Tokens,
		"demonstrations have changed: increase demonstrationsVersion, then -update-warm-start")
	if want.Checkpoints[blas] == "" {
		t.Skipf("no warm start was recorded with %s; -update-warm-start adds it", blas)
	}
	require.Equal(t, want.Checkpoints[blas], got.Checkpoints[blas],
		"cloned weights have changed: increase cloningVersion, then -update-warm-start")
}

// updateWarmGolden writes the file and refuses other outputs under the same version.
func updateWarmGolden(t *testing.T, path string, want, got warmGolden, blas string) {
	t.Helper()
	if want.Demonstrations == got.Demonstrations {
		require.Equal(t, want.Tokens, got.Tokens, "other demonstrations need another demonstrationsVersion")
		if want.Cloning == got.Cloning {
			if of := want.Checkpoints[blas]; of != "" {
				require.Equal(t, of, got.Checkpoints[blas], "other weights need another cloningVersion")
			}
			for name, digest := range want.Checkpoints {
				got.Checkpoints[name] = digest
			}
		}
	}
	text, err := json.MarshalIndent(got, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o644))
}

func makeTinyWarmStart(t *testing.T) (got warmGolden, blas string) {
	t.Helper()
	engine, err := cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	defer engine.Close()
	d, err := stage.New(stage.Options{Store: mem.New(), Trainer: engine, Rollout: engine, Sandbox: noSandbox{},
		Scratch: t.TempDir()})
	require.NoError(t, err)
	a, in := WarmStart{d}, warmInputsOf(tinyWarmRecipe(), engine.Describe())
	demos, _, _, err := a.demonstrations(t.Context(), &stage.Draft{Progress: &stage.Progress{}}, in.recipe(),
		teaching{})
	require.NoError(t, err)
	text, err := json.Marshal(demos)
	require.NoError(t, err)
	m := schema.Manifest{}
	trainer, _ := d.Engines.Pool.CPU()
	require.NoError(t, a.make(t.Context(), &stage.Draft{Worker: d, Progress: &stage.Progress{}}, trainer, in.recipe(),
		teaching{}, schema.AtWarmStart(schema.Digest([]byte("tiny"))), &m))
	blas = engine.Describe().BLAS
	return warmGolden{
		Demonstrations: demonstrationsVersion, Cloning: cloningVersion,
		Tokens: schema.Digest(text), Checkpoints: map[string]string{blas: m.Checkpoint.Digest},
	}, blas
}

// The key depends on every field that a warm start is made by, and on no other field of a recipe.
func TestWarmStartsKeyIsOfItsInputs(t *testing.T) {
	machine := policy.Description{Device: "cpu", BLAS: "b", Threads: 2}
	key := func(r *recipes.Recipe, m policy.Description) string {
		text, err := schema.Canonical(warmInputsOf(r, m))
		require.NoError(t, err)
		return schema.Digest(text)
	}
	base := key(tinyWarmRecipe(), machine)
	for name, change := range map[string]func(*recipes.Recipe){
		"steps":       func(r *recipes.Recipe) { r.Steps = 99 },
		"name":        func(r *recipes.Recipe) { r.Name = "other" },
		"prompts":     func(r *recipes.Recipe) { r.Rollout.Prompts = 99 },
		"temperature": func(r *recipes.Recipe) { r.Rollout.Temperature = 0.5 },
		"sessions":    func(r *recipes.Recipe) { r.Sandbox.Session = true },
		"tier":        func(r *recipes.Recipe) { r.Sandbox.MinTier = "rlimits" },
		"checkpoint":  func(r *recipes.Recipe) { r.Checkpoint.KeepLast = 9 },
		"optimizer":   func(r *recipes.Recipe) { r.Optimizer.LR = 9 },
		"evaluation":  func(r *recipes.Recipe) { r.Evaluation.Every = 9 },
	} {
		r := tinyWarmRecipe()
		change(r)
		require.Equal(t, base, key(r, machine), name)
	}
	for name, change := range map[string]func(*recipes.Recipe){
		"seed":       func(r *recipes.Recipe) { r.Seed++ },
		"policy":     func(r *recipes.Recipe) { r.Policy.FFN++ },
		"teacher":    func(r *recipes.Recipe) { r.WarmStart.Teacher.BadCode = 0.1 },
		"batch":      func(r *recipes.Recipe) { r.WarmStart.Batch++ },
		"turns":      func(r *recipes.Recipe) { r.Rollout.MaxTurns++ },
		"max tokens": func(r *recipes.Recipe) { r.Rollout.MaxTokens++ },
		"output":     func(r *recipes.Recipe) { r.Sandbox.OutputKB++ },
		"torch":      func(r *recipes.Recipe) { r.Engine.Kind = "torch" },
	} {
		r := tinyWarmRecipe()
		change(r)
		require.NotEqual(t, base, key(r, machine), name)
	}
	advised := machine
	advised.Advice = "install more"
	require.Equal(t, base, key(tinyWarmRecipe(), advised))
	for i := range reflect.TypeFor[policy.Description]().NumField() - 1 {
		other := machine
		f := reflect.ValueOf(&other).Elem().Field(i)
		if f.CanInt() {
			f.SetInt(f.Int() + 1)
		} else {
			f.SetString(fmt.Sprint(f, "+"))
		}
		require.NotEqual(t, base, key(tinyWarmRecipe(), other), reflect.TypeFor[policy.Description]().Field(i).Name)
	}
}
