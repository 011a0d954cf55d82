package warmstart

import (
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/gpu/engine"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// The versions of the code that makes a warm start from its inputs. If a change makes one of them give another result
// for the same inputs, increase its number here; then warm starts are made once more. TestWarmStartVersions fails
// until that is done. A warm start's key contains nothing else of the program, so a rebuilt program uses the warm
// starts of an earlier build.
const (
	// demonstrationsVersion covers the problems, the scripted teacher, the agent loop and the tokenizer.
	demonstrationsVersion = 1
	// cloningVersion covers the first weights, the cloning, the CPU engine and the checkpoint's files.
	cloningVersion = 1
)

// warmInputs is everything that a warm start depends on; the digest of its canonical JSON is the warm start's key. A
// warm start is made by a recipe of only these fields (see recipe), so that no other recipe field can influence it.
type warmInputs struct {
	Environment string       `json:"environment"`
	Settings    env.Settings `json:"settings,omitempty"` // of the environment
	// Parts are those of a mix of environments.
	Parts    []recipes.Part `json:"parts,omitempty"`
	Protocol string         `json:"protocol,omitempty"` // if the recipe names one
	Tools    []string       `json:"tools,omitempty"`    // if they are not python alone
	MCP      []mcp.Server   `json:"mcp,omitempty"`      // with their tools pinned
	History  int            `json:"history,omitempty"`  // earlier turns in a prompt, if prompts are whole
	Tasks    string         `json:"tasks,omitempty"`    // digest of the kept tasks, if the recipe filters them
	// Summary makes the expert write summaries, and the tokenizer know what asks for them.
	Summary *recipes.Summary `json:"summary,omitempty"`
	// Demonstrations is the digest of the demonstrations that the recipe names.
	Demonstrations string             `json:"demonstrations,omitempty"`
	Policy         recipes.Policy     `json:"policy"`
	Tokenizer      *recipes.Tokenizer `json:"tokenizer,omitempty"` // if it is trained
	WarmStart      recipes.WarmStart  `json:"warm_start"`
	Limits         warmLimits         `json:"limits"`
	Seed           uint64             `json:"seed"`
	Versions       warmVersions       `json:"versions"`
	Machine        policy.Description `json:"machine"`
	Engine         recipes.Engine     `json:"engine,omitzero"` // for PyTorch; the CPU engine has no settings
}

// warmLimits bound the demonstrations' episodes and the calls in them.
type warmLimits struct {
	MaxTurns         int     `json:"max_turns"`
	MaxTurnTokens    int     `json:"max_turn_tokens"`
	MaxTokens        int     `json:"max_tokens"`
	MaxToolTextBytes int     `json:"max_tool_text_bytes"`
	MaxCalls         int     `json:"max_calls,omitempty"`
	MaxTurnCalls     int     `json:"max_turn_calls,omitempty"`
	MaxEpisodeText   int     `json:"max_episode_tool_text_bytes,omitempty"`
	CPUSeconds       float64 `json:"cpu_seconds"`
	WallSeconds      float64 `json:"wall_seconds"`
	MemoryMB         int     `json:"memory_mb"`
	OutputKB         int     `json:"output_kb"`
}

type warmVersions struct {
	Demonstrations int    `json:"demonstrations"`
	Cloning        int    `json:"cloning"`
	Engine         string `json:"engine,omitempty"` // digest of the PyTorch engine's own files
}

// warmInputsOf returns the inputs of a recipe's warm start, for an engine that computes with machine.
func warmInputsOf(r *recipes.Recipe, machine policy.Description) warmInputs {
	machine.Advice = "" // it does not affect the result
	in := warmInputs{
		Environment: r.Environment.Name, Settings: r.Environment.Settings, Protocol: r.Rollout.Protocol,
		Parts: r.Environment.Parts, Policy: r.Policy, Tokenizer: r.Tokenizer, WarmStart: r.WarmStart, Seed: r.Seed,
		Machine: machine,
		Limits: warmLimits{
			MaxTurns: r.Rollout.MaxTurns, MaxTurnTokens: r.Rollout.MaxTurnTokens, MaxTokens: r.Rollout.MaxTokens,
			MaxToolTextBytes: r.Rollout.MaxToolTextBytes, MaxCalls: r.Rollout.MaxCalls,
			MaxTurnCalls: r.Rollout.MaxTurnCalls, MaxEpisodeText: r.Rollout.MaxEpisodeToolTextBytes,
			CPUSeconds: r.Sandbox.CPUSeconds, WallSeconds: r.Sandbox.WallSeconds, MemoryMB: r.Sandbox.MemoryMB,
			OutputKB: r.Sandbox.OutputKB,
		},
		Versions: warmVersions{Demonstrations: demonstrationsVersion, Cloning: cloningVersion},
	}
	if names := r.Rollout.ToolNames(); !slices.Equal(names, recipes.Rollout{}.ToolNames()) {
		in.Tools = names
	}
	in.MCP, in.Summary = r.Rollout.MCP, r.Rollout.Summary
	if r.Whole() {
		in.History = r.Rollout.History
	}
	if p := r.Policy.Pinned; p != nil { // where the model was found does not matter
		in.Policy.Checkpoint, in.Policy.Token = "sha256:"+p.Digest, ""
	}
	if r.Engine.Declaration().Devices {
		in.Engine, in.Versions.Engine = r.Engine, engine.Digest()
	}
	return in
}

// Shared identifies the warm start that a recipe begins with on one machine: recipes with equal texts share it. It is
// empty for a recipe that clones nothing.
func Shared(r *recipes.Recipe) (string, error) {
	if !r.Clones() {
		return "", nil
	}
	text, err := schema.Canonical(warmInputsOf(r.WithoutAdapter(), policy.Description{}))
	return schema.Digest(text), err
}

// recipe is the recipe that makes a warm start. Demonstrations are scripted, so any valid temperature will do. They
// are cloned as a whole, and each of their calls is a program of its own.
func (in warmInputs) recipe() *recipes.Recipe {
	r := &recipes.Recipe{Seed: in.Seed, Policy: in.Policy, Tokenizer: in.Tokenizer, WarmStart: in.WarmStart,
		Engine: in.Engine}
	r.Environment = recipes.Environment{Name: in.Environment, Settings: in.Settings, Parts: in.Parts}
	l := in.Limits
	r.Rollout = recipes.Rollout{
		Temperature: 1, Protocol: in.Protocol, History: in.History, MaxTurns: l.MaxTurns,
		MaxTurnTokens: l.MaxTurnTokens, MaxTokens: l.MaxTokens, MaxToolTextBytes: l.MaxToolTextBytes, Tools: in.Tools,
		MCP: in.MCP, Summary: in.Summary, MaxCalls: l.MaxCalls, MaxTurnCalls: l.MaxTurnCalls,
		MaxEpisodeToolTextBytes: l.MaxEpisodeText,
	}
	r.Sandbox = recipes.Sandbox{CPUSeconds: l.CPUSeconds, WallSeconds: l.WallSeconds, MemoryMB: l.MemoryMB,
		OutputKB: l.OutputKB}
	return r
}
