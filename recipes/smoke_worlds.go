package recipes

import "fmt"

// smokeWorld is the small form of a paper's world: a task that a policy of 150,000 parameters begins to solve after
// some seconds of cloning.
type smokeWorld struct {
	environment string // the section's YAML
	layers      int
	positions   int
	warmStart   string // the section without its optimizer
	warmup      int
	rollout     string // what the section has in addition to prompts and samples
	maxTokens   int
	reward      string // in the place of one that is not built yet
	sandboxed   bool
}

// smokeWorlds are the worlds of the papers, by the environments that presets name. Where the recipe of a world
// (household, shop, searchqa) has other settings, they are larger ones.
var smokeWorlds = map[string]*smokeWorld{
	sokoban: {
		environment: "{name: sokoban, settings: {size: 5, boxes: 1, min_moves: 2, max_moves: 8}}",
		layers:      2, positions: 192, warmStart: "steps: 200, batch: 48, noise: 0.1", warmup: 20,
		rollout: "max_turns: 8, max_turn_tokens: 16", maxTokens: 160,
	},
	"alfworld": {
		environment: "{name: alfworld, settings: {rooms: bathroom, types: pick, places: 4, things: 2, sparse: true, " +
			"essential: true}}",
		layers: 2, positions: 256, warmStart: "steps: 600, batch: 32, noise: 0.1", warmup: 20,
		rollout: "max_turns: 8, max_turn_tokens: 24", maxTokens: 224,
	},
	"webshop": {
		environment: "{name: webshop, settings: {products: 240, families: fashion, results: 3, brief: true, " +
			"essential: true, marks: true}}",
		layers: 2, positions: 320, warmStart: "steps: 800, batch: 32, noise: 0.2", warmup: 20,
		rollout: "max_turns: 6, max_turn_tokens: 24", maxTokens: 288,
	},
	"search_qa":     searching("search_qa"),
	"deep_research": searching("deep_research"),
}

// searching is the small form of the library, for one of its two environments.
func searching(name string) *smokeWorld {
	return &smokeWorld{
		environment: "{name: " + name + ", settings: {documents: 1200, brief: true, results: 2, " +
			"evaluate: \"birth_river,author_birthplace\"}}",
		layers: 3, positions: 192, warmStart: "steps: 500, batch: 32, noise: 0.3", warmup: 20,
		rollout: "max_turns: 4, max_turn_tokens: 24, max_tool_text_bytes: 256", maxTokens: 160, reward: "f1",
		sandboxed: name == "deep_research",
	}
}

// overrides returns the overrides of the task, and of the policy and warm start that suit its size.
func (w *smokeWorld) overrides(r *Recipe) []string {
	set := []string{
		"environment=" + w.environment,
		fmt.Sprintf("policy={layers: %d, hidden: 96, heads: 3, kv_heads: 1, head_dim: 32, ffn: 192, rope_base: 200, "+
			"max_positions: %d}", w.layers, w.positions),
		fmt.Sprintf("warm_start={%s, optimizer: {lr: 0.003, warmup_steps: %d, decay: cosine, beta2: 0.98, "+
			"weight_decay: 0.01}}", w.warmStart, w.warmup),
		fmt.Sprintf("rollout={mode: interleaved, history: %d, prompts: 8, samples_per_prompt: %d, %s, max_tokens: %d, "+
			"shard_groups: 4%s}", min(r.Rollout.History, 1), smokeSamples(r), w.rollout, w.maxTokens, smokeTree(r)),
	}
	if w.sandboxed {
		set = append(set, fmt.Sprintf("sandbox={cpu_seconds: 1, wall_seconds: 20, session: %t, min_tier: landlock}",
			r.Sandbox.Session))
	}
	return set
}
