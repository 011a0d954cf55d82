package planning

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
)

// remedies lists the changes of the recipe after which the engine fits memory of so many bytes on each device, each
// with the estimate after it.
func (p *placing) remedies(memory int64) string {
	var fit []string
	shared := false
	for _, c := range p.changes() {
		changed := *p.Recipe
		c.change(&changed)
		need := engineMemory(&changed, *p.Model, p.Kind, p.Threads).Total
		more := changed.Engine.Devices > p.Recipe.Engine.Devices
		if need > memory || more && shared { // the fewest devices that are enough
			continue
		}
		shared = shared || more
		fit = append(fit, fmt.Sprintf("%s takes %s", c.name, Size(need)))
	}
	if len(fit) == 0 {
		return "no change of the recipe alone makes it fit; use larger devices, more of them, or a smaller model"
	}
	return "what would fit: " + strings.Join(fit, "; ")
}

type change struct {
	name   string
	change func(r *recipes.Recipe)
}

// changes are what a user can change, the cheapest first.
func (p *placing) changes() []change {
	row := longestRow(p.Recipe)
	var out []change
	if p.Recipe.Optimizer.MicrobatchTokens > row {
		out = append(out, change{fmt.Sprintf("optimizer.microbatch_tokens: %d", row),
			func(r *recipes.Recipe) { r.Optimizer.MicrobatchTokens = row }})
	}
	if engines.Named(p.Kind).Shared {
		half := row / 2
		return append(out, change{fmt.Sprintf("rollout.max_tokens: %d", half), func(r *recipes.Recipe) {
			r.Rollout.MaxTokens, r.Optimizer.MicrobatchTokens = half, min(half, r.Optimizer.MicrobatchTokens)
		}})
	}
	if p.Recipe.Engine.Checkpointing == "off" {
		out = append(out, change{"engine.checkpointing: on", func(r *recipes.Recipe) { r.Engine.Checkpointing = "on" }})
	}
	if p.Recipe.Engine.Dtype == "float32" {
		out = append(out, change{"engine.dtype: bfloat16", func(r *recipes.Recipe) { r.Engine.Dtype = "bfloat16" }})
	}
	for _, n := range []int{2, 4, 8, 16} {
		if n > p.Recipe.Engine.Devices {
			out = append(out, change{fmt.Sprintf("engine.devices: %d", n),
				func(r *recipes.Recipe) { r.Engine.Devices = n }})
		}
	}
	if !p.Recipe.Engine.OffloadOptimizer {
		out = append(out, change{"engine.offload_optimizer: true",
			func(r *recipes.Recipe) { r.Engine.OffloadOptimizer = true }})
	}
	if p.Recipe.Engine.LoRA == nil {
		out = append(out, change{"engine.lora: {}", func(r *recipes.Recipe) {
			r.Engine.LoRA = &recipes.LoRA{Rank: 16, Targets: []string{"q_proj", "k_proj", "v_proj", "o_proj",
				"gate_proj", "up_proj", "down_proj"}}
		}})
	}
	return out
}
