package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/method"
)

// The environments that recipes run in today.
const (
	Calc           = "calc"
	GSM8KSolutions = "gsm8k-solutions"
	OpenAI         = "openai"
)

// RStar2Outcome, MathAnswer and Reference are the rewards: of sampled text, of an imported final
// answer, and the one that an imported conversation's source gave.
const (
	RStar2Outcome = "rstar2_outcome"
	MathAnswer    = "math_answer"
	Reference     = "reference"
)

// GSM8KGroup is the number of trajectories of each group of GSM8KSolutions: four systems
// answered each question.
const GSM8KGroup = 4

// Environment chooses the task.
type Environment struct {
	Name string `json:"name" required:"true" doc:"the task"`
	// LevelShares is the share of each level among training prompts; key = number of operands.
	LevelShares map[string]float64 `json:"level_shares" default:"{'2': 0.3, '3': 0.4, '4': 0.3}" min:"0" max:"1" keys:"2|3|4" only:"calc" doc:"share of each level (number of operands) among training prompts"`
}

// Imported reports whether the environment's trajectories come from elsewhere.
func (e Environment) Imported() bool { return e.Name == GSM8KSolutions || e.Name == OpenAI }

// An environment is one row of the table that fields, rewards and the reference page are read from.
type environment struct {
	name, doc string
	tooled    bool   // calls run in the sandbox
	planned   string // what is missing; "" = nothing
	rewards   []string
}

const noEnvironment = "the environment is not built yet"

var (
	ofMath   = []string{"rstar2_outcome", "spear", "spear_math", "spear_math_qwen3", "retool", "dapo_strict"}
	ofAgents = []string{"arlarena", "spear", "spear_agent"}
	ofSearch = []string{"prs_short", "prs_long", "prs_general", "exact_match", "f1", "deep_research"}
)

var environments = []environment{
	{name: Calc, doc: "generated integer arithmetic with a Python tool", tooled: true,
		rewards: slices.Concat(ofMath, []string{"prs_short", "prs_long", "prs_general", "exact_match", "f1", "arlarena", "spear_agent"})},
	{name: GSM8KSolutions, doc: "imported solutions of GSM8K questions, four a group", tooled: true, rewards: []string{MathAnswer}},
	{name: OpenAI, doc: "imported conversations in OpenAI's chat format, the trials of a task a group", rewards: []string{Reference}},
	{name: "alfworld", doc: "household tasks in text", planned: noEnvironment, rewards: ofAgents},
	{name: "webshop", doc: "shopping in a simulated shop", planned: noEnvironment, rewards: ofAgents},
	{name: "sokoban", doc: "pushing boxes onto targets", planned: noEnvironment, rewards: ofAgents},
	{name: "dapo_math", doc: "DAPO-Math-17K with a code interpreter", tooled: true, planned: noEnvironment, rewards: ofMath},
	{name: "tir_math", doc: "mathematics with Python blocks in the text, as SimpleTIR and ARLArena run it", tooled: true, planned: noEnvironment, rewards: append([]string{"arlarena"}, ofMath...)},
	{name: "rstar2_math", doc: "rStar2-Agent's integer-answer problems with its tool protocol", tooled: true, planned: noEnvironment, rewards: ofMath},
	{name: "search_qa", doc: "questions answered by searching Wikipedia", planned: noEnvironment, rewards: ofSearch},
	{name: "deep_research", doc: "questions answered by searching the web and running Python", tooled: true, planned: noEnvironment, rewards: ofSearch},
}

// classes are the groups of environments that a tag may name.
var classes = map[string]func(environment) bool{
	"trained": func(e environment) bool { return !Environment{Name: e.name}.Imported() },
	"tooled":  func(e environment) bool { return e.tooled },
}

// members resolves a tag's names and classes into environments.
func members(only []string) []string {
	var names []string
	for _, e := range environments {
		if slices.ContainsFunc(only, func(o string) bool { return o == e.name || classes[o] != nil && classes[o](e) }) {
			names = append(names, e.name)
		}
	}
	return names
}

// environmentNamed returns the row of that name.
func environmentNamed(name string) environment {
	i := slices.IndexFunc(environments, func(e environment) bool { return e.name == name })
	if i < 0 {
		return environment{}
	}
	return environments[i]
}

// around is the slot table of what surrounds a method; nothing changes it.
var around = append([]method.Slot{taskSlot()}, surroundings()...)

// Slots returns every place where a recipe makes a named choice: those around the method, then the
// method's own.
func Slots() []method.Slot { return slices.Concat(around, method.Slots()) }

func taskSlot() method.Slot {
	task := method.Slot{Name: "environment.name", Doc: "the task"}
	for _, e := range environments {
		task.Choices = append(task.Choices, method.Choice{Name: e.name, Doc: e.doc, Planned: e.planned})
	}
	return task
}

// surroundings are the slots of the policy, the rollout and the optimiser.
func surroundings() []method.Slot {
	const noModels, noBranching = "runs start from models that are made here", "branching is not built yet"
	on := func(name, doc, planned string) method.Slot {
		return method.Slot{Name: name, Doc: doc, Choices: []method.Choice{{Name: method.On, Doc: doc, Planned: planned}}}
	}
	read := func(names ...string) (out []method.Param) {
		for _, n := range names {
			out = append(out, method.Param{Name: n})
		}
		return out
	}
	torch := read("devices", "hosts", "dtype", "deterministic", "checkpointing", "offload_optimizer")
	return []method.Slot{
		{Name: "engine.kind", Doc: "engine that runs the models", Choices: []method.Choice{
			{Name: EngineAuto, Doc: "torch where the worker has a GPU and PyTorch, cpu elsewhere; the run says which and why", Params: torch},
			{Name: EngineCPU, Doc: "Go, on the processor"},
			{Name: EngineTorch, Doc: "PyTorch, on graphics processors or on the processor", Params: slices.Concat(torch, read("lora"))},
		}},
		on("policy.checkpoint", "a published model to start from", noModels),
		{Name: "rollout.mode", Doc: "how generating and tools interleave", Choices: []method.Choice{
			{Name: "staged", Doc: "generating a turn and running its calls alternate as durable activities"},
			{Name: "tree", Doc: "trajectories branch after tool responses", Source: "AEPO §3.1; ARPO §3.2", Params: read("tree"), Planned: noBranching},
		}},
		{Name: "rollout.tree.rule", Doc: "when a trajectory branches", Choices: []method.Choice{
			{Name: "aepo", Doc: "on rising entropy, less with each branching in a row", Source: "AEPO eqs 5–7, Algorithm 1", Params: read("slope", "monitor", "sensitivity"), Planned: noBranching},
			{Name: "arpo", Doc: "on rising entropy", Source: "ARPO §3.2", Planned: noBranching},
		}},
		on("rollout.history", "prompts of layout turns with the task and the latest turns alone", ""),
		on("optimizer.minibatch_rows", "mini-batches of so many rows", ""),
		on("evaluation.top_p", "samples from the likeliest tokens of so much probability", "the engine samples from all tokens"),
		on("evaluation.top_k", "samples from so many likeliest tokens", "the engine samples from all tokens"),
	}
}

// Planned lists what the recipe asks for and no run can do yet, by field, with what is missing;
// nil for a recipe that runs.
func (r *Recipe) Planned() []string {
	var missing []string
	for _, p := range method.PicksOf(*r, Slots()) {
		if text := missingFor(p); text != "" {
			missing = append(missing, text)
		}
	}
	return missing
}

// missingFor says why a pick cannot run yet, or "".
func missingFor(p method.Pick) string {
	for _, s := range around {
		if s.Name != p.Slot {
			continue
		}
		if c, _ := s.Choice(p.Choice); c.Planned != "" {
			return fmt.Sprintf("%s: %s", strings.TrimSuffix(p.Slot+": "+p.Choice, ": "+method.On), c.Planned)
		}
		return ""
	}
	return p.Missing()
}

// CallsTools reports that calls of the environment's trajectories run in the sandbox.
func (e Environment) CallsTools() bool { return environmentNamed(e.Name).tooled }
