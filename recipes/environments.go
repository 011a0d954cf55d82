package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/env/mix"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Names of environments that this package refers to.
const (
	Calc   = "calc"
	OpenAI = "openai"

	code    = "code"
	sokoban = "sokoban"
)

// RStar2Outcome is the name of a reward that scores sampled text.
const RStar2Outcome = "rstar2_outcome"

// Environment chooses the task.
type Environment struct {
	Name string `json:"name" required:"true" doc:"the task"`
	// LevelShares is the share of each level among training prompts; key = number of operands.
	LevelShares map[string]float64 `json:"level_shares" default:"{'2': 0.3, '3': 0.4, '4': 0.3}" min:"0" max:"1" keys:"2|3|4" only:"calc" doc:"share of each level (number of operands) among training prompts"`
	// Settings holds the value of every setting that the environment declares.
	Settings env.Settings `json:"settings" only:"configured" doc:"the environment's own settings"`
	// Parts are the environments that a mix consists of.
	Parts []Part `json:"parts,omitempty" only:"mix" doc:"the environments of the mix, two or more. They share the protocol, the tools and the reward, so all are played by actions or all ask questions"`
}

// Declaration returns the environment's declaration: that of its name, or what a mix of its parts is. Its Strings are
// those of the recipe's settings.
func (e Environment) Declaration() env.Declaration {
	d := declared(e.Name)
	if d.Mixed {
		d, _ = mix.Combine(mixed(e.Parts))
		return d
	}
	if d.More != nil {
		always := d.Strings
		d.Strings = func() []string { return append(always(), d.More(e.Settings)...) }
	}
	return d
}

// Imported reports whether the environment's trajectories are imported instead of sampled.
func (e Environment) Imported() bool { return declared(e.Name).Imported }

// CallsTools reports whether the environment's trajectories run tool calls in the sandbox.
func (e Environment) CallsTools() bool { return e.Declaration().Sandboxed }

// Worlds says which world each environment is, where its settings decide.
func (e Environment) Worlds() (out []string) {
	for _, c := range e.configured() {
		if c.declaration.World != nil {
			out = append(out, c.declaration.Name+" is "+c.declaration.World(c.settings))
		}
	}
	return out
}

// declared returns the declaration with that name, or the zero declaration.
func declared(name string) env.Declaration {
	d, _ := environments.Named(name)
	return d
}

// Open opens the recipe's environment with the recipe's settings. Tasks in remote files cannot be drawn from it.
func (r *Recipe) Open() (env.Environment, error) { return r.OpenWith(nil) }

// OpenWith opens the recipe's environment with the recipe's settings. fetch opens remote files.
func (r *Recipe) OpenWith(fetch dataset.Fetch) (env.Environment, error) {
	d := r.Environment.Declaration()
	if d.Open == nil {
		return nil, fmt.Errorf("environment.name: %s supplies no tasks", r.Environment.Name)
	}
	e, err := d.Open(env.Options{Settings: r.Environment.Settings, MaxTurns: r.Rollout.MaxTurns,
		LevelShares: r.Environment.LevelShares, Fetch: fetch})
	if err != nil {
		return nil, fmt.Errorf("open environment %s: %w", r.Environment.Name, err)
	}
	return e, nil
}

// Protocol returns the recipe's prompt format: the one that the recipe names, or the environment's default.
func (r *Recipe) Protocol() (protocol.Protocol, error) {
	name := cmp.Or(r.Rollout.Protocol, r.Environment.Declaration().Protocol)
	if name == "" && len(r.Environment.Parts) > 0 {
		return nil, fmt.Errorf("rollout.protocol: must be named, because the parts of the mix have no common one of "+
			"their own (%s)", mix.Protocols(mixed(r.Environment.Parts)))
	}
	p, err := protocol.Named(name)
	if err != nil {
		return nil, fmt.Errorf("rollout.protocol: %w", err)
	}
	return p, nil
}

// Whole reports whether each turn of the recipe's trajectories has a complete prompt of its own, so that the turn can
// be read alone.
func (r *Recipe) Whole() bool {
	p, err := r.Protocol()
	return err == nil && (p.Spec().Whole || r.Rewritten())
}

// Rewritten reports whether the chat template of the recipe's model writes earlier turns differently in later prompts.
func (r *Recipe) Rewritten() bool {
	p, err := r.Protocol()
	_, chat := p.(protocol.Chat)
	calls := len(r.Rollout.ToolNames())+len(r.Rollout.MCP) > 0 && r.Rollout.MaxTurns > 1
	return err == nil && chat && calls && r.Policy.Pinned != nil && r.Policy.Pinned.Rewrites
}

// classes maps the name of a class to its condition. A tag may name a class of environments.
var classes = map[string]func(env.Declaration) bool{
	"trained":      func(d env.Declaration) bool { return !d.Imported },
	"tooled":       func(d env.Declaration) bool { return d.Sandboxed },
	"demonstrated": func(d env.Declaration) bool { return d.Demonstrated },
	"calling":      func(d env.Declaration) bool { return len(d.AllTools()) > 0 },
	// noised are the environments whose demonstrations have one number for all faults.
	"noised": func(d env.Declaration) bool { return d.Demonstrated && d.Name != Calc },
	// listed are the environments that can list their training tasks.
	"listed":     func(d env.Declaration) bool { return d.Listed },
	"configured": func(d env.Declaration) bool { return len(d.Settings) > 0 },
}

// defaultTools returns an environment's own default of rollout.tools as YAML; "" if it has none.
func defaultTools(d env.Declaration) string {
	if d.Tools == nil {
		return ""
	}
	return "[" + strings.Join(d.Tools, ", ") + "]"
}

// toolsFit checks that the environment has the tools that the recipe names.
func toolsFit(r *Recipe) string {
	if r.Environment.unfit() {
		return ""
	}
	named, have := r.Rollout.ToolNames(), r.Environment.Declaration().AllTools()
	if r.Environment.bringsFunctions() {
		return unless(len(named)+len(r.Rollout.MCP) == 0, "must be empty: each task of %s brings its functions",
			r.Environment.Name)
	}
	if len(have) == 0 { // a mix of environments that are played by actions
		return unless(slices.Equal(named, Rollout{}.ToolNames()) && len(r.Rollout.MCP) == 0,
			"has no place in a recipe of parts that are played by actions")
	}
	none := len(named) == 0 && (len(r.Rollout.MCP) > 0 || r.protocolSpec().Name == "chat")
	if text := distinct("tool", named); text != "" && !none {
		return text
	}
	if len(named) == 0 && r.Environment.Declaration().Demonstrated && r.WarmStart.Steps > 0 {
		return "must name the tools that demonstrations call, or warm_start.steps must be 0"
	}
	for _, name := range named {
		if !slices.Contains(have, name) {
			return fmt.Sprintf("must be among %s in a recipe of %s, got %s", strings.Join(have, ", "),
				r.Environment.Name, name)
		}
	}
	return r.Rollout.partsCall(mixed(r.Environment.Parts))
}

// members resolves a tag's names and classes into environments. It returns nil for an empty tag.
func members(only []string) []string {
	if len(only) == 0 {
		return nil
	}
	names := []string{}
	for _, d := range environments.All {
		if slices.ContainsFunc(only, func(o string) bool { return o == d.Name || classes[o] != nil && classes[o](d) }) {
			names = append(names, d.Name)
		}
	}
	return names
}

// Slots returns every place where a recipe makes a named choice: first the slots around the method, then the method's
// own slots.
func Slots() []method.Slot {
	return slices.Concat([]method.Slot{taskSlot()}, surroundings(), method.Slots())
}

func taskSlot() method.Slot {
	task := method.Slot{Name: "environment.name", Doc: "the task"}
	for _, d := range environments.All {
		task.Choices = append(task.Choices, method.Choice{Name: d.Name, Doc: d.Doc, Source: d.Source})
	}
	return task
}

// surroundings returns the slots of the policy, the rollout and the optimiser.
func surroundings() []method.Slot {
	on := func(name, doc string) method.Slot {
		return method.Slot{Name: name, Doc: doc, Choices: []method.Choice{{Name: method.On, Doc: doc}}}
	}
	kinds := method.Slot{Name: "engine.kind", Doc: "engine that runs the models"}
	for _, k := range engines.All {
		kinds.Choices = append(kinds.Choices,
			method.Choice{Name: k.Name, Doc: k.Doc, Params: choice.Reading(k.Fields...)})
	}
	return []method.Slot{
		kinds,
		on("policy.checkpoint", "a published model to start from"),
		{Name: "rollout.mode", Doc: "how generating and tools interleave", Choices: []method.Choice{
			{Name: ModeInterleaved, Doc: "one durable activity takes a shard from its prompts to its rewards and " +
				"commits every turn; each episode goes on as soon as its calls have results, in a tree as soon as " +
				"those of its group have; the episodes of a shard go on turn by turn on PyTorch and Tinker engines " +
				"without engine.servers, where the run's model sums up pages, and on the CPU engine if they have " +
				"one turn"},
			{Name: ModeStaged, Doc: "generating a turn and running its calls alternate as durable activities"},
			{Name: modeTree, Doc: "interleaved, with rollout.tree; a name from before, when no other mode had trees",
				Source: "AEPO §3.1; ARPO §3.2"},
		}},
		{Name: "rollout.tree.rule", Doc: "when a trajectory branches", Choices: []method.Choice{
			{Name: treeAEPO, Doc: "on rising entropy, less with each branching in a row",
				Source: "AEPO eqs 5–7, Algorithm 1", Params: choice.Reading("slope", "monitor", "sensitivity",
					"count_monitor", "monitor_root", "rounding", "at_threshold", "base", "streak")},
			{Name: treeARPO, Doc: "on rising entropy", Source: "ARPO §3.2"},
		}},
		protocols(),
		on("rollout.history", "prompts of layout turns with the task and the latest turns alone"),
		method.OptimizerSlot("optimizer", "rule by which a step changes the weights"),
		method.OptimizerSlot("warm_start.optimizer", "rule by which cloning changes the weights"),
		method.DecaySlot(),
		on("optimizer.minibatch_rows", "mini-batches of so many rows"),
		on("optimizer.minibatch_prompts", "mini-batches of the rows of so many prompts"),
	}
}

// protocols returns the slot of the prompt format.
func protocols() method.Slot {
	s := method.Slot{Name: "rollout.protocol", Doc: "the prompt format"}
	for _, p := range protocol.All {
		spec := p.Spec()
		s.Choices = append(s.Choices, method.Choice{Name: spec.Name, Doc: spec.Doc, Source: spec.Source})
	}
	return s
}

// Planned lists the settings that the recipe leaves open, by field. It returns nil for a recipe that can run.
func (r *Recipe) Planned() []string {
	var missing []string
	for _, c := range r.Environment.configured() {
		if wants := c.declaration.Wants; wants != nil {
			if text := wants(c.settings); text != "" {
				missing = append(missing, c.path+"."+text)
			}
		}
	}
	return missing
}
