package planning

import (
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
)

// BatchTokens returns the most tokens that pass through the model at once: a micro-batch, or one longer row.
func BatchTokens(r *recipes.Recipe) int { return max(r.Optimizer.MicrobatchTokens, longestRow(r)) }

// longestRow returns the tokens of the longest row of a batch, in any stage of the recipe's schedule.
func longestRow(r *recipes.Recipe) int {
	longest := r.Rollout.MaxTokens
	for _, s := range r.Schedule.Stages() {
		longest = max(longest, s.MaxTokens)
	}
	return longest
}

// Adapter returns the sizes of the recipe's adapter; nil if the whole model trains.
func Adapter(e recipes.Engine) *plan.Adapter {
	if e.LoRA == nil {
		return nil
	}
	return &plan.Adapter{Rank: e.LoRA.Rank, Targets: e.LoRA.Targets}
}

// Update estimates a recipe's update on GPUs in micro-batches of so many tokens.
func Update(r *recipes.Recipe, model plan.Model, tokens int) plan.Memory {
	return model.UpdateMemory(settings(r, tokens))
}

func settings(r *recipes.Recipe, tokens int) plan.Settings {
	return plan.Settings{
		BFloat16: r.Engine.Dtype != "float32", Checkpointing: r.Engine.Checkpointing != "off",
		Offload: r.Engine.OffloadOptimizer, States: states(r),
		Ranks: ranks(r.Engine), Tokens: tokens, Row: min(tokens, longestRow(r)), Adapter: Adapter(r.Engine),
	}
}

// states returns the states of a trained number: those of the optimiser that has most, of the update and of the warm
// start.
func states(r *recipes.Recipe) int {
	n := r.Optimizer.States()
	if r.Clones() {
		n = max(n, r.WarmStart.Optimizer.States())
	}
	return n
}

func ranks(e recipes.Engine) int { return max(1, e.Devices) * max(1, e.Hosts) }

// contextBytes is what a process takes of a device before it holds anything: CUDA's context, the kernels of the
// libraries, and the buffers of collectives. It is rounded up from what NVML shows of an idle PyTorch process.
const contextBytes = 1 << 30

// EngineMemory is what one device of the engine holds at its peak, in bytes. On the CPU engine it is the worker's
// process.
type EngineMemory struct {
	Context int64 `json:"context"`
	// Policy is an update of the policy alone.
	Policy plan.Memory `json:"policy"`
	// Reference is what the resident reference model takes, and Critic what the critic's weights and optimiser do.
	Reference int64 `json:"reference"`
	Critic    int64 `json:"critic"`
	// CriticUpdate is by how much an update of the critic takes more than one of the policy at its peak.
	CriticUpdate int64 `json:"critic_update"`
	// Sampling is what generating takes on top of the resident models; 0 if inference servers generate.
	Sampling Sampling `json:"sampling"`
	// Total is the greater of updating and of generating.
	Total int64 `json:"total"`
}

// Sampling is what generating takes on one device, in bytes.
type Sampling struct {
	Whole    int64 `json:"whole_model"` // the model unsharded, if several devices share it
	RowCache int64 `json:"row_cache"`   // keys and values of one row of the greatest length
}

// engineMemory estimates the engine's memory on each device.
//
// The policy, the reference and the critic stay resident: weights and optimiser of all three add up. Gradients,
// activations and logits exist during an update of one model at a time, so that the greater counts. Generating happens
// between updates. The engine fills what is free with the cache of as many rows as fit, and needs one row at least.
func engineMemory(r *recipes.Recipe, model plan.Model, kind string, threads int) EngineMemory {
	s := settings(r, BatchTokens(r))
	out := EngineMemory{Context: contextBytes, Policy: model.UpdateMemory(s)}
	if engines.Named(kind).Shared {
		s = plan.Settings{}
		out = EngineMemory{
			Policy: model.ProcessorMemory(BatchTokens(r), threads, states(r), len(r.Engine.Servers) == 0)}
	}
	outputs := r.Outputs()
	resident := out.Policy.Weights + out.Policy.Optimizer
	if outputs.Reference {
		out.Reference = out.Policy.Weights
		resident += out.Reference
	}
	passing := func(m plan.Memory) int64 { return m.Gradients + m.Activations + m.Head }
	peak := passing(out.Policy)
	if outputs.Values {
		// A critic has the policy's tensors, and a value head of one row in the place of logits.
		c := out.Policy
		c.Head = 0
		out.Critic = c.Weights + c.Optimizer
		out.CriticUpdate = max(0, passing(c)-peak)
		resident += out.Critic
		peak += out.CriticUpdate
	}
	if len(r.Engine.Servers) == 0 {
		out.Sampling = sampling(r, model, s)
		peak = max(peak, out.Sampling.Whole+out.Sampling.RowCache)
	}
	out.Total = out.Context + resident + peak
	return out
}

func sampling(r *recipes.Recipe, model plan.Model, s plan.Settings) Sampling {
	width := int64(4)
	if s.BFloat16 {
		width = 2
	}
	out := Sampling{RowCache: int64(longestRow(r)) * model.CacheBytes(width)}
	if s.Ranks > 1 {
		out.Whole = width * model.Params
	}
	return out
}

// ServerMemory is what an inference server takes of each of its devices, in bytes.
type ServerMemory struct {
	Weights int64 `json:"weights"`
	// Workspace is for what the server computes with: the context, activations, logits and recorded graphs.
	Workspace int64 `json:"workspace"`
	Cache     int64 `json:"cache"`        // what is left for keys and values
	Tokens    int64 `json:"cache_tokens"` // of so many tokens, over all its devices
	// Rows is how many rows of the greatest length the cache has room for.
	Rows int64 `json:"rows"`
}

// What vLLM and SGLang take of a device: nine tenths of its memory (vLLM's --gpu-memory-utilization; SGLang chooses a
// value near it), of which workspaceBytes are for other things than weights and cache.
const (
	serverShare    = 0.9
	workspaceBytes = 3 << 30
)

// serverMemory estimates a server on several devices of equal memory, with the weights split evenly among them:
//
//	cache = 0.9 · memory − workspace − weights / devices,  tokens = devices · cache / CacheBytes
func serverMemory(s servers.Server, model plan.Model, longest, devices int, memory int64) ServerMemory {
	width := serverWidth(s)
	n := int64(devices)
	out := ServerMemory{Weights: (width*serverParams(s, model) + n - 1) / n, Workspace: workspaceBytes}
	out.Cache = max(0, int64(serverShare*float64(memory))-out.Workspace-out.Weights)
	out.Tokens = out.Cache * n / model.CacheBytes(width)
	out.Rows = out.Tokens / int64(max(1, longest))
	return out
}

// serverParams are the parameters that a server holds. vLLM's model has an output head next to the table of tokens
// (docs/servers.md).
func serverParams(s servers.Server, model plan.Model) int64 {
	if s.Kind == servers.KindVLLM && model.Tied {
		return model.Params + int64(model.Vocab)*int64(model.Hidden)
	}
	return model.Params
}

// serverWidth is the bytes of a number in a server's weights and cache.
func serverWidth(s servers.Server) int64 {
	if s.Dtype == "bfloat16" {
		return 2
	}
	return 4
}
