package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// A dry run prints the plan on standard error, and nothing but the recipe on standard output.
func TestDryRunPlans(t *testing.T) {
	code, out, messages := command(t, "run", "qwen3-4b-prs-vspo", "--dry-run", "--inventory", "h200x8")
	require.Equal(t, exitDone, code, messages)
	require.True(t, json.Valid([]byte(out)))
	for _, want := range []string{
		"  model      hf://Qwen/Qwen3-4B, 4.02 G parameters (as published;",
		"  devices    host 1: 8 × H200 of 140.0 GiB (declared: h200x8)\n",
		"4 ×   vllm server", "ports 8001, 8002, 8003, 8004",
		"start: CUDA_VISIBLE_DEVICES=7 VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs " +
			"--generation-config vllm --max-model-len 4096 --max-num-seqs 128 --dtype bfloat16 --host 127.0.0.1 " +
			"--port 8004\n",
		"host 1, device 3  engine, rank 3 of 4", "a step, by estimate: rollout ",
		"/dev/shm/ropewalk-8004: 16.4 GiB (two versions of the weights)\n",
	} {
		require.Contains(t, messages, want)
	}
	require.NotContains(t, messages, "cannot run here", "it is planned for other devices")

	code, out, _ = command(t, "run", "qwen3-4b-prs-vspo", "--dry-run", "--inventory", "h200x8", "--json",
		"--assume", "mfu=0.2,mbu=0.5", "--assume", "fill=1")
	require.Equal(t, exitDone, code)
	var dry struct{ Plan planning.Plan }
	require.NoError(t, json.Unmarshal([]byte(out), &dry))
	require.Equal(t, plan.Assumed{MFU: 0.2, MBU: 0.5, Fill: 1}, dry.Plan.Assumed)
	require.Len(t, dry.Plan.Placement, 8)
	require.EqualValues(t, dry.Plan.Step.MostTrained, dry.Plan.Step.Trained, "budgets are full")
}

// What does not fit is bad input, with the plan and the reason.
func TestDryRunRefusesWhatDoesNotFit(t *testing.T) {
	code, out, messages := command(t, "run", "qwen3-4b-spear", "--dry-run", "--inventory", "h200x4")
	require.Equal(t, exitBadInput, code)
	require.True(t, json.Valid([]byte(out)))
	require.Contains(t, messages, "qwen3-4b-spear does not fit host 1: 4 × H200 of 140.0 GiB (declared: h200x4):\n"+
		"server vllm http://127.0.0.1:8001: host 1 has no free device left")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--dry-run", "--inventory", "abacus"}, `--inventory: "abacus" is neither PARTxN`},
		{[]string{"--dry-run", "--assume", "mfu=2"}, "--assume: mfu is a share: more than 0 and at most 1, got 2"},
		{[]string{"--dry-run", "--assume", "speed=1"},
			"--assume speed=1: there is no speed; there are mfu, mbu and fill"},
		{[]string{"--dry-run", "--assume", "mfu"}, "--assume mfu: want mfu, mbu or fill"},
		{[]string{"--inventory", "h200x8"}, "--inventory: only with --dry-run"},
		{[]string{"--assume", "mfu=1"}, "--assume: only with --dry-run"},
	} {
		code, _, messages := command(t, append([]string{"run", "quickstart"}, c.args...)...)
		require.Equal(t, exitBadInput, code)
		require.Contains(t, messages, c.want)
	}
}

// Without a declaration a plan is for the devices that NVML reports: free memory, and none that cannot be leased.
func TestInventoryOfThisHost(t *testing.T) {
	leasesIn(t)
	i, err := planning.InventoryHere(t.Context(), device.Options{Library: someGPUs()})
	require.NoError(t, err)
	require.Equal(t, "as NVML reports it now", i.Source)
	devices := i.Hosts[0].Devices
	require.Len(t, devices, 5)
	require.Equal(t, "NVIDIA H200", devices[0].Name)
	require.Equal(t, 4.8e12, devices[0].Bandwidth)
	require.Empty(t, devices[0].Unusable)
	require.InDelta(t, 121*devicetest.GiB, devices[0].Memory, devicetest.GiB, "20 GiB are used")
	require.Equal(t, "it is degraded", devices[1].Unusable)
	require.Equal(t, "it is cut into MIG instances", devices[2].Unusable)
	require.NotEmpty(t, devices[4].Unusable)
	require.Positive(t, i.Hosts[0].Memory)
}

// The sizes of a model come from its files if they are here.
func TestSizesOfModelsHere(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "model")
	shape := checkpoint.Shape{Vocab: 64, Hidden: 8, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, FFN: 8, Positions: 64,
		RopeTheta: 10000, NormEps: 1e-6, Pad: -1}
	require.NoError(t, checkpoint.Init(folder, shape, 1, nil))
	t.Setenv("ROPEWALK_MODELS", filepath.Dir(folder))
	sizes := func(address string) (int64, string) {
		_, out, messages := command(t, "run", "presets/prs-short", "--dry-run", "--json", "--inventory", "h200x8",
			"--set", "policy.checkpoint="+address)
		var dry struct{ Plan planning.Plan }
		require.NoError(t, json.Unmarshal([]byte(out), &dry), messages)
		return dry.Plan.Model.Params, dry.Plan.Model.Source
	}
	n, source := sizes(folder)
	require.Equal(t, shape.Params(), n)
	require.Equal(t, folder, source)
	n, _ = sizes("model")
	require.Equal(t, shape.Params(), n, "in the folder of models")
	n, source = sizes("Qwen3-4B-RFT")
	require.EqualValues(t, 4_022_468_096, n)
	require.Contains(t, source, "those of Qwen3-4B by its name")
	n, source = sizes("hf://someone/unheard-of")
	require.Zero(t, n)
	require.Contains(t, source, "this program does not know its sizes")
	n, source = sizes("run:before")
	require.Zero(t, n)
	require.Contains(t, source, "is read when the run is prepared")
	require.NoError(t, os.WriteFile(filepath.Join(folder, checkpoint.FileConfig), []byte("{"), 0o600))
	code, _, messages := command(t, "run", "presets/prs-short", "--dry-run", "--inventory", "h200x8", "--set",
		"policy.checkpoint="+folder)
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "policy.checkpoint: corrupt checkpoint")
}

// A dry run reads the chat template of a model that is here, and says what it means for the run.
func TestDryRunReadsTheChatTemplate(t *testing.T) {
	own, err := tokenizer.Train([]string{"<|im_start|>", "<|im_end|>"},
		[]string{strings.Repeat("one and two ", 9)}, 300)
	require.NoError(t, err)
	symbols, plain := own.Symbols()
	v := tokenizer.Vocabulary{Tokens: symbols, Pattern: `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ` +
		`?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`}
	for _, m := range own.Merges() {
		a, b, _ := strings.Cut(m, " ")
		v.Merges = append(v.Merges, [2]string{a, b})
	}
	for id := plain; id < len(symbols); id++ {
		v.Added = append(v.Added, int32(id))
	}
	shape := checkpoint.Shape{Vocab: len(symbols), Hidden: 8, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, FFN: 8,
		Positions: 128, RopeTheta: 10000, NormEps: 1e-6, Pad: -1, EOS: []int32{int32(len(symbols) - 1)}}
	run := func(template string, set ...string) (int, string) {
		folder := filepath.Join(t.TempDir(), "model")
		config, err := json.Marshal(map[string]any{"tokenizer_class": "PreTrainedTokenizerFast",
			"chat_template": template})
		require.NoError(t, err)
		require.NoError(t, checkpoint.Init(folder, shape, 1, map[string][]byte{"tokenizer.json": v.JSON(),
			"tokenizer_config.json": config}))
		args := []string{"run", "smollm2", "--dry-run", "--set", "policy.checkpoint=" + folder}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		code, _, messages := command(t, args...)
		return code, messages
	}
	code, messages := run(protocol.ChatML)
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, messages, "note: a response ends with \"<|im_end|>\"\n"+
		"note: the chat template writes no reasoning of earlier turns\n")
	code, messages = run("{{ messages }}")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "does not fit rollout.protocol: the chat template ends a turn of the assistant with")
	_, _, messages = command(t, "run", "smollm2", "--dry-run", "--set", "policy.checkpoint=hf://someone/unheard-of")
	require.Contains(t, messages, "note: the chat template of hf://someone/unheard-of is read when the run is prepared")
}

// A dry run tries what the recipe names, and says what an evaluation takes.
func TestDryRunTriesTheRecipe(t *testing.T) {
	folder := t.TempDir()
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "{\"question\": \"What is %d and 1?\", \"answer\": \"%d\"}\n", i, i+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "own.jsonl"), []byte(rows.String()), 0o600))
	recipe := filepath.Join(folder, "own.yaml")
	require.NoError(t, os.WriteFile(recipe, []byte("version: 1\nname: own\nseed: 1\nsteps: 1\n"+
		"environment: {name: math, settings: {train: "+folder+"/own.jsonl, held_out_share: 0.2}}\n"+
		"reward: {name: rstar2_outcome}\nengine: {kind: cpu}\nrollout: {prompts: 4, samples_per_prompt: 2}\n"+
		"warm_start: {steps: 10, optimizer: {lr: 0.001, warmup_steps: 0}}\nadvantage: {name: grpo}\n"+
		"loss: {name: ppo_clip}\noptimizer: {lr: 0.001}\n"), 0o600))
	code, _, messages := command(t, "run", recipe, "--dry-run")
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, messages, "held-out split of math has")
	gone := filepath.Join(folder, "gone")
	for set, want := range map[string]string{
		"environment.settings.held_out_share=0": "environment: held-out tasks: ",
		"policy={checkpoint: " + gone + "}":     "policy.checkpoint: stat " + gone + ": no such file",
		"data={decontaminate: {ngram: 2}}":      "data: the filters drop all",

		"reward={name: python, module: 'gone:f', kwargs: '{}', path: ''}": "No module named 'gone'",
	} {
		code, _, messages := command(t, "run", recipe, "--dry-run", "--set", set)
		require.Equal(t, exitBadInput, code, set)
		require.Contains(t, messages, want, set)
	}
}
