package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// badInputs are command lines that must exit with 2 before anything starts. want is the whole of
// standard error; TINY, FILE, EMPTY and STATE stand for the test's files.
var badInputs = []struct {
	name string
	args []string
	want string
}{
	{"no recipe", []string{"run"}, "ropewalk: missing argument RECIPE; usage: ropewalk run RECIPE [flags]"},
	{"missing file", []string{"run", "nope.yaml"},
		"ropewalk: no recipe file nope.yaml; the built-in recipes are cold-start, household, " +
			"household-novice, openai-offline, quickstart, qwen3-4b-aepo, qwen3-4b-prs-vspo, qwen3-4b-rstar2, " +
			"qwen3-4b-sampo, qwen3-4b-spear, reasoning, searchqa, searchqa-aepo, searchqa-hops, shop, smollm2, " +
			"sokoban, and the presets (`ropewalk methods`)"},
	{"a tree that is missing", []string{"run", "TINY", "--set", "rollout.mode=tree"},
		"ropewalk: --set rollout.mode=tree: rollout.tree: is required for rollout.mode tree (TINY:35)"},
	{"settings of another engine", []string{"run", "TINY", "--set", "engine.dtype=bfloat16"},
		"ropewalk: --set engine.dtype=bfloat16: cannot be combined with engine.kind cpu; it belongs to auto, torch"},
	{"a folder", []string{"run", "."}, `ropewalk: read recipe .: is a directory`},
	{"empty file", []string{"run", "EMPTY"}, `ropewalk: EMPTY: the file is empty`},
	{"unknown field", []string{"run", "FILE"}, `ropewalk: FILE:2: polcy: no such field; did you mean policy?`},
	{"unknown flag", []string{"run", "TINY", "--sed", "3"},
		`ropewalk: unknown flag --sed; did you mean --seed or --set?`},
	{"seed that is no number", []string{"run", "TINY", "--seed", "x"},
		`ropewalk: --seed: must be a whole number ≥ 0, got "x"`},
	{"combination", []string{"run", "TINY", "--set", "resample.roc.keep=32"},
		`ropewalk: --set resample.roc.keep=32: must be ≤ rollout.samples_per_prompt (8), got 32`},
	{"combination across files", []string{"run", "TINY", "--set", "rollout.oversample=2"},
		"ropewalk: --set rollout.oversample=2: resample.roc.keep: must be ≤ rollout.samples_per_prompt (2), got 4 " +
			"(TINY:58)"},
	{"wrong type", []string{"run", "TINY", "--set", "optimizer.lr=fast"},
		`ropewalk: --set optimizer.lr=fast: must be a number, got "fast"`},
	{"out of range", []string{"run", "TINY", "--set", "optimizer.minibatches=0"},
		`ropewalk: --set optimizer.minibatches=0: must be ≥ 1, got 0`},
	{"typo in a path", []string{"run", "TINY", "--set", "rollout.promts=4"},
		`ropewalk: --set rollout.promts=4: no such field; did you mean rollout.prompts?`},
	{"no value", []string{"run", "TINY", "--set", "steps"}, `ropewalk: --set steps: must be path=value`},
	{"two faults", []string{"run", "TINY", "--set", "stepz=1", "--set", "seed=-1"},
		"ropewalk: --set seed=-1: must be ≥ 0, got -1\n--set stepz=1: no such field; did you mean steps?"},
	{"imported trajectories", []string{"run", "openai-offline"},
		"ropewalk: openai-offline: environment.name: openai holds imported trajectories, which cannot be " +
			"trained on; use `ropewalk import`"},
	{"bad run id", []string{"run", "TINY", "--run-id", "../x"},
		`ropewalk: --run-id: run id "../x": want 1 to 128 of a-z, 0-9, dot, dash and underscore, ` +
			`the first a letter or digit`},
	{"too many arguments", []string{"run", "TINY", "again"},
		`ropewalk: unexpected argument "again"; usage: ropewalk run RECIPE [flags]`},
	{"unknown command", []string{"runz"}, `ropewalk: unknown command "runz"; did you mean run or runs?`},
	{"nothing like a command", []string{"bogus"}, "ropewalk: unknown command \"bogus\"; `ropewalk --help` lists them"},
	{"resume nothing", []string{"resume"}, "ropewalk: missing argument RUN; usage: ropewalk resume RUN [flags]"},
	{"resume a bad id", []string{"resume", "../x"},
		`ropewalk: run id "../x": want 1 to 128 of a-z, 0-9, dot, dash and underscore, the first a letter or digit`},
	{"verify a bad id", []string{"verify", "X"},
		`ropewalk: run id "X": want 1 to 128 of a-z, 0-9, dot, dash and underscore, the first a letter or digit`},
	{"show a bad id", []string{"show", "X"},
		`ropewalk: run id "X": want 1 to 128 of a-z, 0-9, dot, dash and underscore, the first a letter or digit`},
	{"show a bad step", []string{"show", "x", "--step", "-1"}, `ropewalk: --step: must be ≥ 1, got -1`},
	{"follow a bad id", []string{"follow", "X"},
		`ropewalk: run id "X": want 1 to 128 of a-z, 0-9, dot, dash and underscore, the first a letter or digit`},
	{"no query", []string{"sql"}, "ropewalk: missing argument QUERY; usage: ropewalk sql QUERY [flags]"},
	{"import of an unknown format", []string{"import", "csv", "x"},
		`ropewalk: unknown format "csv"; there are openai`},
	{"import of a missing file", []string{"import", "openai", "nope.jsonl"},
		`ropewalk: read conversations: nope.jsonl: no such file or directory`},
	{"import of another file", []string{"import", "openai", "FILE"},
		`ropewalk: read conversations: FILE:1: is not a JSON object: invalid character 'v' looking for beginning ` +
			`of value`},
	{"the environment of nothing", []string{"env"}, "ropewalk: no local stack runs in STATE; `ropewalk up` starts one"},
	{"worker without a store", []string{"worker"},
		"ropewalk: read S3 settings: environment variable AWS_ACCESS_KEY_ID is not set\na worker connects to the " +
			"servers that the environment names; for those of the running local stack: env $(ropewalk env) " +
			"ropewalk worker"},
	{"empty run id", []string{"run", "TINY", "--run-id", ""},
		"ropewalk: --run-id: is empty; give a value, or leave the flag out"},
	{"misspelt recipe", []string{"run", "quikstart"}, "ropewalk: no recipe file quikstart; did you mean quickstart?"},
	{"engine of another name", []string{"run", "TINY", "--set", "engine.kind=gpu"},
		`ropewalk: --set engine.kind=gpu: must be one of auto, cpu, torch, tinker (did you mean torch?), got "gpu"`},
}

func TestBadInputExitsWith2AndStartsNothing(t *testing.T) {
	h, _ := needs(t, noServers)
	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	for name, content := range map[string]string{
		"tiny.yaml": string(text), "empty.yaml": "\n",
		"typo.yaml": "version: 1\npolcy: {layers: 2}\n" + without(string(text), "version: 1\n"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(h.cwd, name), []byte(content), 0o600))
	}
	files := strings.NewReplacer("TINY", "tiny.yaml", "FILE", "typo.yaml", "EMPTY", "empty.yaml", "STATE", h.dir)
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			var args []string
			for _, a := range c.args {
				args = append(args, files.Replace(a))
			}
			r := h.run(t, args...)
			require.Equal(t, 2, r.code, r.err)
			require.Equal(t, files.Replace(c.want), strings.TrimSuffix(r.err, "\n"))
			require.Empty(t, r.out)
			require.NoDirExists(t, h.dir, "nothing is started")
		})
	}
}

// without drops a line from a recipe's comments or body.
func without(text, line string) string { return strings.Replace(text, line, "", 1) }

func TestUnknownRunExitsWith2(t *testing.T) {
	h, _ := needs(t, sharedStack)
	bucket := filepath.Join(h.dir, "s3", "ropewalk")
	for command, want := range map[string]string{
		"verify": "no such run in the record: nosuch has committed nothing in " + bucket,
		"show":   "no such run in the record: nosuch has committed nothing in " + bucket,
		"follow": "no such run in the record: nosuch has no entry in the catalogue of " + bucket,
		"resume": "no such run in the record: nosuch has no entry in the catalogue of s3://ropewalk at ",
	} {
		t.Run(command, func(t *testing.T) {
			r := h.run(t, command, "nosuch")
			require.Equal(t, 2, r.code, r.err)
			require.Contains(t, r.err, want)
		})
	}
	r := h.run(t, "sql", "select nothing from rewards")
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, `"nothing" not found`)
	r = h.run(t, "show", "base", "--step", "77")
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, "step 77 of run base")
}

func TestAnotherRecipeUnderTheSameNameIsRefused(t *testing.T) {
	h, _ := needs(t, sharedStack)
	r := h.run(t, recipe("base", "--seed", "9")...)
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, "run base was made by another recipe")
}
