package planning

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
)

const gib = 1 << 30

func resolved(t *testing.T, name string, set ...string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Resolve(name, "", set, nil, nil)
	require.NoError(t, err)
	return &r.Recipe
}

func qwen4B(t *testing.T) *plan.Model {
	t.Helper()
	shape, ok := plan.Published("hf://Qwen/Qwen3-4B")
	require.True(t, ok)
	m := plan.Of(shape)
	return &m
}

// planned plans a recipe with Qwen3-4B on a declared inventory.
func planned(t *testing.T, r *recipes.Recipe, inventory string) Plan {
	t.Helper()
	i, err := plan.Declared(inventory)
	require.NoError(t, err)
	return Make(Input{Recipe: r, Kind: "torch", Model: qwen4B(t), ModelSource: "as published", Inventory: i,
		Assumed: plan.UsualAssumptions()})
}

// Every recipe for eight GPUs fits eight of 80 GB and of 141 GB, engine on 0 to 3 and a server on each other.
func TestRecipesForRealHardware(t *testing.T) {
	for _, name := range []string{"qwen3-4b-spear", "qwen3-4b-rstar2", "qwen3-4b-sampo", "qwen3-4b-aepo",
		"qwen3-4b-prs-vspo"} {
		for _, inventory := range []string{"h200x8", "h100x8", "a100x8"} {
			p := planned(t, resolved(t, name), inventory)
			require.Empty(t, p.Refused, name)
			require.Len(t, p.Placement, 8, name)
			for i, d := range p.Placement {
				require.Equal(t, i, d.Device)
				require.Equal(t, i < 4, d.Server == nil)
				require.LessOrEqual(t, d.Need, d.Memory)
			}
			seconds, ok := p.Step.Seconds()
			require.True(t, ok)
			require.Positive(t, seconds)
			require.Len(t, p.Writes.Folders, 4)
		}
		four := planned(t, resolved(t, name), "h200x4")
		require.Len(t, four.Refused, 4, "no device is left for the servers")
		require.Contains(t, four.Refused[0], "server vllm http://127.0.0.1:8001: host 1 has no free device left")
		small := planned(t, resolved(t, name), "l4x8")
		require.Contains(t, strings.Join(small.Refused, "\n"), "out of memory, by estimate: the engine needs ")
	}
}

// The numbers of SPEAR's recipe, worked by hand for P = 4,022,468,096 parameters on four ranks.
func TestMemoryByHand(t *testing.T) {
	r := resolved(t, "qwen3-4b-spear")
	m := engineMemory(r, *qwen4B(t), "torch", 0)
	const p, embedding = 4_022_468_096, 151936 * 2560
	share := int64(p / 4)
	layers := int64(p - embedding)
	require.Equal(t, 6*share+2*max(embedding, 2*layers/36), m.Policy.Weights,
		"masters, copies, and two layers unsharded")
	require.Equal(t, 4*share, m.Policy.Gradients)
	require.Equal(t, 8*share, m.Policy.Optimizer)
	require.EqualValues(t, 2*18432*(36*2560+5*2560+4*40*128+4*9728), m.Policy.Activations, "one row of 18432 tokens")
	require.Equal(t, int64(contextBytes)+m.Policy.Total(), m.Total)
	require.Zero(t, m.Reference+m.Critic+m.Sampling.RowCache)

	s := serverMemory(r.Engine.Servers[0], *qwen4B(t), 18432, 1, 80*gib)
	require.EqualValues(t, 2*(p+embedding), s.Weights, "vLLM's head is of its own")
	require.EqualValues(t, 72*gib-3*gib-s.Weights, s.Cache)
	require.EqualValues(t, s.Cache/147456, s.Tokens)
	require.EqualValues(t, s.Tokens/18432, s.Rows)
	two := serverMemory(r.Engine.Servers[0], *qwen4B(t), 18432, 2, 80*gib)
	require.Equal(t, s.Weights/2, two.Weights)
	require.Greater(t, two.Tokens, 2*s.Tokens)
}

// What is resident adds up, what is used for one model at a time does not.
func TestMemoryOfRoles(t *testing.T) {
	m := qwen4B(t)
	with := engineMemory(resolved(t, "qwen3-4b-prs-vspo"), *m, "torch", 0)
	require.Equal(t, with.Policy.Weights, with.Reference, "its KL term needs a reference")
	require.Equal(t, with.Context+with.Policy.Total()+with.Reference, with.Total)

	ppo := resolved(t, "presets/ppo", "engine={kind: torch}")
	c := engineMemory(ppo, *m, "torch", 0)
	require.Equal(t, c.Policy.Weights+c.Policy.Optimizer, c.Critic)
	require.Zero(t, c.CriticUpdate, "it has no logits")
	require.Equal(t, c.Context+c.Policy.Total()+c.Reference+c.Critic, c.Total)

	alone := resolved(t, "qwen3-4b-spear", "engine.servers=[]", "engine.max_mismatch=0")
	own := engineMemory(alone, *m, "torch", 0)
	require.EqualValues(t, 2*m.Params, own.Sampling.Whole)
	require.EqualValues(t, 18432*147456, own.Sampling.RowCache)
	one := engineMemory(resolved(t, "qwen3-4b-spear", "engine.servers=[]", "engine.max_mismatch=0",
		"engine.devices=1"), *m, "torch", 0)
	require.Zero(t, one.Sampling.Whole, "one device has the whole model")
	tiny := engineMemory(resolved(t, "qwen3-4b-spear", "engine.servers=[]", "engine.max_mismatch=0",
		"optimizer.microbatch_tokens=1", "rollout.max_tokens=8", "rollout.max_turn_tokens=8"), *m,
		"torch", 0)
	require.LessOrEqual(t, tiny.Total, own.Total)
}

// A refusal has the numbers, and each remedy that it names does make the run fit.
func TestRemediesFit(t *testing.T) {
	r := resolved(t, "qwen3-4b-spear", "engine.servers=[]", "engine.max_mismatch=0", "engine.devices=1")
	p := planned(t, r, "h100x1")
	require.Len(t, p.Refused, 1)
	require.Contains(t, p.Refused[0], "out of memory, by estimate: the engine needs ")
	require.Contains(t, p.Refused[0], "the largest of those that are too small has 79.0 GiB")
	named := 0
	for setting, value := range map[string]string{"engine.offload_optimizer: true": "engine.offload_optimizer=true",
		"optimizer.microbatch_tokens: 18432": "optimizer.microbatch_tokens=18432", "engine.lora: {}": "engine.lora={}",
		"engine.devices: 2": "engine.devices=2"} {
		if !strings.Contains(p.Refused[0], setting) {
			continue
		}
		named++
		changed := resolved(t, "qwen3-4b-spear", "engine.servers=[]", "engine.max_mismatch=0", "engine.devices=1",
			value)
		require.Empty(t, planned(t, changed, "h100x8").Refused, setting)
	}
	require.GreaterOrEqual(t, named, 2)
	hopeless := planned(t, r, "l4x1")
	require.Contains(t, hopeless.Refused[0], "what would fit: engine.devices: 8 takes")
	require.NotContains(t, hopeless.Refused[0], "engine.devices: 2 takes")
}

func TestServersOnSeveralDevices(t *testing.T) {
	shape, _ := plan.Published("Qwen3-32B")
	m := plan.Of(shape)
	r := resolved(t, "qwen3-4b-spear", "engine.devices=8",
		"engine.servers=[{kind: sglang, url: 'http://localhost:9000', dtype: bfloat16}, "+
			"{kind: llama, url: 'http://127.0.0.1:9001', folder: /w, model: m}, "+
			"{kind: vllm, url: 'http://b:9002', dtype: bfloat16}, {kind: vllm, url: 'http://elsewhere:9003'}]")
	i, err := plan.Declared("h200x8,l40sx8")
	require.NoError(t, err)
	i.Hosts[1].Name = "b"
	i.Hosts[1].Devices[1].Unusable = "it is degraded"
	p := Make(Input{Recipe: r, Kind: "torch", Model: &m, Inventory: i, Assumed: plan.UsualAssumptions()})
	require.Len(t, p.Refused, 1, "the first host is full")
	require.Contains(t, p.Refused[0], "server sglang http://localhost:9000: host 1 has no free device left")
	on := map[int]string{}
	for _, d := range p.Placement {
		if d.Host == "b" {
			on[d.Device] = d.What
		}
	}
	require.Equal(t, map[int]string{0: "server vllm http://b:9002", 2: "server vllm http://b:9002"}, on,
		"65 GB of weights need two devices of 44 GiB, and the degraded one is passed over")
	var b bytes.Buffer
	require.NoError(t, p.WriteText(&b))
	require.Contains(t, b.String(), "CUDA_VISIBLE_DEVICES=0,2 VLLM_SERVER_DEV_MODE=1 vllm serve MODEL")
	require.Contains(t, b.String(), "--tensor-parallel-size 2")
	require.Nil(t, p.Step.Rollout, "how fast elsewhere is, is not known")
}

func TestStepByHand(t *testing.T) {
	r := resolved(t, "qwen3-4b-spear")
	p := planned(t, r, "h200x8")
	m, s := qwen4B(t), p.Step
	require.Equal(t, 128*16, s.Trajectories)
	require.Equal(t, 96*16, s.Learnt, "low variance keeps three quarters of the groups")
	require.InEpsilon(t, 2048*9216, s.Sampled, 1e-12, "half of 18432")
	require.EqualValues(t, 2048*18432, s.MostSampled)
	require.InEpsilon(t, 2*1536*m.TrainFlops(9216), s.TrainingFlops, 1e-12, "replay may double it")
	require.InEpsilon(t, 1536*m.ForwardFlops(9216), s.ScoringFlops, 1e-12)
	require.InEpsilon(t, s.TrainingFlops/(4*989e12*0.4), *s.Training, 1e-12)
	want := m.RolloutSeconds(plan.Rollout{Rows: 2048, Generated: 9216, Devices: 4, AtOnce: s.AtOnce, Width: 2},
		plan.SpeedOf(989e12, 4.8e12, plan.UsualAssumptions()))
	require.InEpsilon(t, want, *s.Rollout, 1e-12)
	require.Equal(t, int(float64(p.Placement[4].Server.Tokens)/9216), s.AtOnce)

	roc := resolved(t, "qwen3-4b-rstar2")
	require.Equal(t, 512*16, learnt(roc), "RoC keeps 16 of 32")
	turns := resolved(t, "qwen3-4b-sampo")
	average, rows := rowOf(turns, 0.5)
	require.Equal(t, row{sampled: 256, read: 1024}, average)
	require.InEpsilon(t, 25.0, rows, 1e-12, "half of 50 turns")
	lora := planned(t, resolved(t, "qwen3-4b-prs-vspo", "engine.lora={}"), "h200x8")
	require.Less(t, lora.Step.TrainingFlops, planned(t, resolved(t, "qwen3-4b-prs-vspo"), "h200x8").Step.TrainingFlops)
}

// Times are proportional to what they follow from.
func TestTimesFollowTheAssumptions(t *testing.T) {
	r := resolved(t, "qwen3-4b-prs-vspo")
	i, err := plan.Declared("h200x8")
	require.NoError(t, err)
	of := func(a plan.Assumed) *Step {
		return Make(Input{Recipe: r, Kind: "torch", Model: qwen4B(t), Inventory: i, Assumed: a}).Step
	}
	usual, half := of(plan.UsualAssumptions()), of(plan.Assumed{MFU: 0.2, MBU: 0.6, Fill: 0.5})
	require.InEpsilon(t, 2**usual.Training, *half.Training, 1e-9)
	require.InEpsilon(t, 2**usual.Scoring, *half.Scoring, 1e-9)
	slow := of(plan.Assumed{MFU: 0.4, MBU: 0.3, Fill: 0.5})
	require.InEpsilon(t, 2**usual.Rollout, *slow.Rollout, 0.05, "decoding is bound by the bandwidth")
	i.Hosts[0].Devices[0].Flops = 0
	require.Nil(t, of(plan.UsualAssumptions()).Training)
}

func TestUnknownModels(t *testing.T) {
	i, err := plan.Declared("h200x8")
	require.NoError(t, err)
	p := Make(Input{Recipe: resolved(t, "qwen3-4b-spear"), Kind: "torch", ModelSource: "it is private",
		Inventory: i, Assumed: plan.UsualAssumptions()})
	require.Empty(t, p.Refused)
	require.Len(t, p.Placement, 8)
	require.Nil(t, p.Memory)
	require.Contains(t, p.Notes[0], "the sizes of the model are not known: it is private")
	var b bytes.Buffer
	require.NoError(t, p.WriteText(&b))
	require.Contains(t, b.String(), "memory unknown")
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.NotContains(t, string(text), "null,\"processes\"")
}

// The CPU engine is held to the machine's memory.
func TestProcessorMemory(t *testing.T) {
	r := resolved(t, "smollm2")
	shape, _ := plan.Published("smollm2-135m")
	m := plan.Of(shape)
	in := Input{Recipe: r, Kind: "cpu", Model: &m, Assumed: plan.UsualAssumptions(), Threads: 2,
		Inventory: plan.Inventory{Source: "no driver", Hosts: []plan.Host{{Name: "laptop", Memory: 24 * gib}}}}
	require.Empty(t, Make(in).Refused)
	in.Inventory.Hosts[0].Memory = 8 * gib
	p := Make(in)
	require.Empty(t, p.Refused)
	require.Contains(t, p.Notes[0], "may run out of memory: micro-batches of 16384 tokens take ")
	require.Contains(t, p.Notes[0], "optimizer.microbatch_tokens: 128 takes ")
	in.Inventory.Hosts[0].Memory = 2 * gib
	p = Make(in)
	require.Len(t, p.Refused, 1)
	require.Contains(t, p.Refused[0], "laptop: out of memory, by estimate: the CPU engine takes ")
	require.Contains(t, p.Refused[0], "the machine has 2.0 GiB")
}

// checkpoints are written as the estimate says, but for headers and configuration.
func TestCheckpointBytesMeasured(t *testing.T) {
	shape := checkpoint.Shape{Vocab: 512, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 192,
		Positions: 128, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.Init(dir, shape, 1, nil))
	info, err := os.Stat(filepath.Join(dir, checkpoint.FileWeights))
	require.NoError(t, err)
	each, base := CheckpointBytes(resolved(t, "quickstart"), plan.Of(shape))
	require.Zero(t, base)
	require.Equal(t, 12*shape.Params(), each)
	require.InDelta(t, 4*shape.Params(), info.Size(), 8<<10)
	lora := resolved(t, "quickstart", "engine={kind: torch, lora: {rank: 4, targets: [q_proj]}}")
	each, base = CheckpointBytes(lora, plan.Of(shape))
	require.EqualValues(t, 12*2*4*(64+64), each)
	require.Equal(t, 4*shape.Params(), base)
}

func TestCommands(t *testing.T) {
	r := resolved(t, "qwen3-4b-prs-vspo")
	for want, s := range map[string]served{
		"ropewalk serve MODEL --allow-load --max-model-len 4096 --listen 127.0.0.1:8000": {
			server: servers.Server{Kind: servers.KindRopewalk}},
		"llama-server --models-dir /w --cache-type-k f32 --cache-type-v f32 -fa off --parallel 3 --port 8000": {
			server: servers.Server{Kind: servers.KindLlama, Folder: "/w", Parallel: 3}},
		"CUDA_VISIBLE_DEVICES=1,2 python -m sglang.launch_server --model-path MODEL --context-length 4096 --tp 2 " +
			"--host 10.0.0.7 --port 8000": {devices: []int{1, 2},
			server: servers.Server{Kind: servers.KindSGLang, URL: "http://10.0.0.7:8000"}},
		"": {server: servers.Server{Kind: servers.KindOpenAI}},
	} {
		require.Equal(t, want, command(r, s, "8000"))
	}
}

func TestWords(t *testing.T) {
	require.Equal(t, []string{"1.0 KiB", "1.5 MiB", "2.0 GiB", "3.0 TiB"},
		[]string{Size(1 << 10), Size(3 << 19), Size(2 * gib), Size(3 << 40)})
	require.Equal(t, []string{"999", "10.0 k", "1.0 M", "4.02 G"},
		[]string{count(999), count(1e4), count(1e6), count(4.02e9)})
	require.Equal(t, "3m20s", duration(200))
}
