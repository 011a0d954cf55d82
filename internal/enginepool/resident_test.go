package enginepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// able is a sampler that can do everything that a recipe can need.
var able = policy.Capabilities{TokenIDs: true, LogProbs: true, TopLogProbs: 20, Entropy: policy.EntropyFull,
	Temperature: true, TopP: true, TopK: true, MinP: true, RowSeeds: true, Weights: policy.WeightsLoad}

// TestResidentForgetsWhatALostEngineHeld: after ErrLost the next use of any role must load; after another error it need
// not.
func TestResidentForgetsWhatALostEngineHeld(t *testing.T) {
	v := Version{Digest: "d"}
	for _, c := range []struct {
		err    error
		forget bool
	}{
		{nil, false},
		{context.Canceled, false},
		{policy.ErrOutOfMemory, false},
		{fmt.Errorf("forward: %w: died", policy.ErrLost), true},
		{fmt.Errorf("forward: %w", policy.ErrNotLoaded), true},
	} {
		for name, use := range map[string]func(e *Trainer) error{
			"policy": func(e *Trainer) error {
				return e.Use(t.Context(), policy.RolePolicy, v, true, func(policy.Trainer) error { return c.err })
			},
			"critic": func(e *Trainer) error {
				return e.Use(t.Context(), policy.RoleCritic, v, false, func(policy.Trainer) error { return c.err })
			},
			"alone": func(e *Trainer) error { return e.Exclusive(func(policy.Trainer) error { return c.err }) },
			"sampler": func(e *Trainer) error {
				s := Sampler{Resident: e.Resident}
				return s.Use(t.Context(), v, func(policy.Sampler) error { return c.err })
			},
		} {
			e, _ := poolOf(nil).CPU()
			e.Mark(policy.RolePolicy, "d", true)
			e.Mark(policy.RoleCritic, "d", false)
			e.Mark(policy.RoleReference, "r", false)
			require.True(t, errors.Is(use(e), c.err), name)
			for role, digest := range map[policy.Role]string{policy.RolePolicy: "d", policy.RoleCritic: "d",
				policy.RoleReference: "r"} {
				require.Equal(t, !c.forget, e.Holds(role, digest), "%s: %s", name, role)
			}
		}
	}
}

// loads is an engine that records what is loaded.
type loads struct {
	policy.Engine
	calls []string
	fail  error
}

func (l *loads) Load(_ context.Context, role policy.Role, dir string, optimizer bool) error {
	l.calls = append(l.calls, fmt.Sprint(role, " ", dir, " ", optimizer))
	return l.fail
}

func (l *loads) Capabilities() policy.Capabilities { return able }

func (l *loads) Describe() policy.Description { return policy.Description{Device: "a fake"} }

// TestResidentAfterLoads: a folder that is loaded by hand replaces what was resident under its role, also if the load
// fails.
func TestResidentAfterLoads(t *testing.T) {
	for _, fail := range []error{nil, errors.New("the folder is torn")} {
		engine := &loads{fail: fail}
		e, _ := New(Options{Trainer: engine}).CPU()
		e.Mark(policy.RolePolicy, "d", true)
		e.Mark(policy.RoleCritic, "c", true)
		require.ErrorIs(t, e.Exclusive(func(policy.Trainer) error {
			return e.LoadFolder(t.Context(), policy.RolePolicy, "folder", true)
		}), fail)
		require.Equal(t, []string{"policy folder true"}, engine.calls)
		require.False(t, e.Holds(policy.RolePolicy, "d"))
		require.True(t, e.Holds(policy.RoleCritic, "c"))
		require.False(t, e.Holds(policy.RolePolicy, ""), "an unknown model is no version")
	}
}

// demanding is a recipe that needs every capability that a recipe can need.
func demanding(kind string) *recipes.Recipe {
	return &recipes.Recipe{
		Steps: 3, Engine: recipes.Engine{Kind: kind, Deterministic: true, Devices: 1},
		Rollout: recipes.Rollout{Temperature: 0.7, Tree: &recipes.Tree{Rule: "aepo"}, MinP: 0.1, TopP: 0.9,
			TopK: 40},
		Evaluation: recipes.Evaluation{Temperature: 0.6, Greedy: true, TopP: 0.95, TopK: 20},
	}
}

// TestSamplersAreHeldToTheRecipe: a recipe that needs more than its sampler states is refused where the run is prepared
// and where a stage leases the sampler; the error names the recipe's field and the capability.
func TestSamplersAreHeldToTheRecipe(t *testing.T) {
	for want, lack := range map[string]func(*policy.Capabilities){
		"rollout: exact token ids":                    func(c *policy.Capabilities) { c.TokenIDs = false },
		"rollout: entropies over the full vocabulary": onlyTopK,
		"rollout.tree.rule: log-probabilities of the likeliest tokens": func(c *policy.Capabilities) {
			c.TopLogProbs = 0
		},
		"loss.old_log_probs: log-probabilities of sampled tokens": noLogProbs,
		"steps: new weights":                        fixedWeights,
		"rollout.temperature: temperature":          oneTemperature,
		"evaluation.temperature: temperature":       oneTemperature,
		"evaluation.greedy: temperature 0":          oneTemperature,
		"evaluation.top_p: top-p sampling":          func(c *policy.Capabilities) { c.TopP = false },
		"evaluation.top_k: top-k sampling":          func(c *policy.Capabilities) { c.TopK = false },
		"rollout.top_p: top-p sampling":             func(c *policy.Capabilities) { c.TopP = false },
		"rollout.top_k: top-k sampling":             func(c *policy.Capabilities) { c.TopK = false },
		"rollout.min_p: min-p sampling":             func(c *policy.Capabilities) { c.MinP = false },
		"engine.deterministic: a seed for each row": func(c *policy.Capabilities) { c.RowSeeds = false },
	} {
		can := able
		lack(&can)
		field, capability, _ := strings.Cut(want, ": ")
		text := field + ": the sampler cannot do what the recipe needs: a device does not offer " + capability + " ("
		for kind, pool := range map[string]*Pool{
			"cpu":   New(Options{Sampler: closing{maker: &torchMaker{offer: Offer{Capabilities: can}}}}),
			"torch": poolOf(&torchMaker{devices: 1, offer: Offer{Device: "a device", Capabilities: can}}),
		} {
			_, err := pool.Choose(t.Context(), demanding(kind))
			refusedFor(t, err, text)
			_, _, err = pool.Sampler(t.Context(), "r", demanding(kind), false)
			refusedFor(t, err, text)
			require.NoError(t, pool.Close())
		}
	}
	_, err := New(Options{Sampler: &loads{}}).Choose(t.Context(), demanding("cpu"))
	require.NoError(t, err)
}

func onlyTopK(c *policy.Capabilities)       { c.Entropy, c.TopLogProbs = policy.EntropyTopK, 5 }
func oneTemperature(c *policy.Capabilities) { c.Temperature = false }
func noLogProbs(c *policy.Capabilities)     { c.LogProbs = false }
func fixedWeights(c *policy.Capabilities)   { c.Weights = policy.WeightsFixed }

func refusedFor(t *testing.T, err error, text string) {
	t.Helper()
	require.ErrorIs(t, err, policy.ErrIncapable)
	starts := func(line string) bool { return strings.HasPrefix(line, text) }
	require.True(t, slices.ContainsFunc(strings.Split(err.Error(), "\n"), starts), "%v has no line %q", err, text)
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
}
