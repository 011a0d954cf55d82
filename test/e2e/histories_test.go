package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ropewalk/ropewalk/internal/bench/idle"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// records skips a test that only writes histories, unless -update is given.
func records(t *testing.T) {
	t.Helper()
	if !*update {
		t.Skip("records only with -update")
	}
}

// recorder is a home with the recipe of recorded runs, under a name without this machine's folders.
func recorder(t *testing.T) *home {
	t.Helper()
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "tiny.yaml"), text, 0o600))
	return h
}

// TestRecordHistories writes the histories that workflows/history_replay_test.go replays. They are made by
// real runs, so their times, digests and figures differ from recording to recording.
func TestRecordHistories(t *testing.T) {
	records(t)
	h := recorder(t)
	train := func(run string, more ...string) []string {
		return append([]string{"run", "tiny.yaml", "--json", "--run-id", run}, more...)
	}

	h.run(t, train("recorded")...).ok(t)
	save(t, h, "recorded", "", "train.json")
	save(t, h, "recorded/step=2", "", "step.json")

	h.recordKilledWorker(t, train("recorded-killed"))
	h.recordContinueAsNew(t, train("recorded-long", "--set", "steps=21", "--set", "rollout.prompts=2", "--set",
		"rollout.shard_groups=1"))
	require.Equal(t, 2, h.run(t, train("recorded", "--seed", "3")...).code)
	save(t, h, "recorded", "", "refused-recipe.json")
	c := h.dial(t)
	require.Error(t, startFromUI(t, c, workflows.TrainRunName, "recorded-bad",
		map[string]any{"recipe": "quickstart", "stepz": 3}).Get(context.Background(), nil))
	save(t, h, "recorded-bad", "", "refused-input.json")
	h.run(t, "import", "openai", h.conversations(t), "--run-id", "recorded-talk").ok(t)
	save(t, h, "recorded-talk", "", "import-openai.json")
	h.recordParked(t, "recorded-parked", train("recorded-parked"))
	h.recordSteered(t, "recorded-steered", train("recorded-steered", "--set", "steps=40"))
	h.recordResume(t, train("recorded-lost"))
}

// recordParked breaks the checkpoint that the last step starts from, so that the step fails and is
// retried once it is whole again.
func (h *home) recordParked(t *testing.T, run string, args []string) {
	t.Helper()
	h.run(t, args...).ok(t)
	checkpoint := h.record().manifest(t, schema.At(run, steps-1, schema.StageUpdate).ManifestKey()).Checkpoint
	restore := h.record().flip(t, checkpoint.Prefix+"model.safetensors")
	h.record().unfinish(t, run, schema.StageUpdate, schema.StagePublish)
	h.run(t, "resume", run, "--json").parked(t)
	save(t, h, fmt.Sprintf("%s/step=%d", run, steps), "", "step-failed.json")
	restore()
	h.run(t, "unpark", run, "--retry", "--timeout", "30m").ok(t)
	save(t, h, run, "", "train-parked.json")
}

// recordSteered pauses a run, changes its settings, unpauses it and stops it.
func (h *home) recordSteered(t *testing.T, run string, args []string) {
	t.Helper()
	live := h.start(t, args...)
	eventually(t, func() bool { return h.record().heads(run) > 0 }, "the first step")
	h.run(t, "pause", run).ok(t)
	live.says(t, "ropewalk unpause "+run)
	h.run(t, "set", run, "--learning-rate", "0.0005").ok(t)
	done := h.record().heads(run)
	h.run(t, "unpause", run).ok(t)
	eventually(t, func() bool { return h.record().heads(run) > done }, "a step more")
	h.run(t, "stop", run).ok(t)
	live.wait(t).ok(t)
	save(t, h, run, "", "train-steered.json")
}

// TestRecordReplayHistories writes the histories of ReplayStage.
func TestRecordReplayHistories(t *testing.T) {
	records(t)
	h, _ := needs(t, sharedStack)
	h.train(t, "recorded-replay", "--set", "checkpoint.keep_last=4")
	c := h.dial(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for file, input := range map[string]map[string]any{
		"replay.json": {"run_id": "recorded-replay", "step": 2, "from": "reward",
			"set": []string{"advantage.std=false"}},
		"replay-trains.json": {"run_id": "recorded-replay", "step": 2, "from": "reward", "through": "update",
			"set": []string{"advantage.std=false"}},
		"replay-check.json": {"run_id": "recorded-replay", "check": true},
	} {
		require.NoError(t, startFromUI(t, c, workflows.ReplayStageName, "recorded-"+file, input).Get(ctx, nil))
		save(t, h, "recorded-"+file, "", file)
	}
}

// TestRecordLogprobsHistories writes that of a step with the stage logprobs.
func TestRecordLogprobsHistories(t *testing.T) {
	records(t)
	h, _ := needs(t, sharedStack)
	h.run(t, recipe("recorded-logprobs", forwarding...)...).ok(t)
	save(t, h, "recorded-logprobs/step=2", "", "step-logprobs.json")
}

// TestRecordAlongsideHistories writes the histories of a run whose evaluations run alongside its steps.
func TestRecordAlongsideHistories(t *testing.T) {
	records(t)
	h := recorder(t)
	h.run(t, "run", "tiny.yaml", "--json", "--run-id", "recorded-alongside", "--set", "evaluation.every=1").ok(t)
	h.run(t, "verify", "recorded-alongside").ok(t)
	save(t, h, "recorded-alongside", "", "train-alongside.json")
	save(t, h, "recorded-alongside/step=2", "", "step-alongside.json")
}

// TestRecordFinishHistories writes that of an interleaved step that updates and publishes in one activity.
func TestRecordFinishHistories(t *testing.T) {
	records(t)
	h := recorder(t)
	h.run(t, "run", "tiny.yaml", "--json", "--run-id", "recorded-finish", "--set", "rollout.mode=interleaved",
		"--set", "evaluation.every=0", "--set", ownWorkflows).ok(t)
	h.run(t, "verify", "recorded-finish").ok(t)
	save(t, h, "recorded-finish/step=2", "", "step-finish.json")
}

// ownWorkflows gives interleaved steps so many shards that each step is a workflow of its own.
const ownWorkflows = "rollout.shard_groups=1"

// TestRecordOwnStepHistories writes that of an interleaved run that takes its short steps itself.
func TestRecordOwnStepHistories(t *testing.T) {
	records(t)
	h := recorder(t)
	h.run(t, "run", "tiny.yaml", "--json", "--run-id", "recorded-own", "--set", "rollout.mode=interleaved", "--set",
		"evaluation.every=2").ok(t)
	h.run(t, "verify", "recorded-own").ok(t)
	save(t, h, "recorded-own", "", "train-own.json")
}

// TestRecordInterleavedHistories writes the histories of runs in the default mode: with its steps one after the other,
// with steps that are sampled ahead, of chosen tasks, and evaluated afterwards.
func TestRecordInterleavedHistories(t *testing.T) {
	records(t)
	h := recorder(t)
	train := func(run string, set ...string) {
		args := []string{"run", "tiny.yaml", "--json", "--run-id", run}
		for _, s := range append([]string{"rollout.mode=interleaved", "steps=3", ownWorkflows}, set...) {
			args = append(args, "--set", s)
		}
		h.run(t, args...).ok(t)
		h.run(t, "verify", run).ok(t)
	}
	train("recorded-interleaved", "evaluation.every=2", "record.compact=true")
	save(t, h, "recorded-interleaved", "", "train-interleaved.json")
	save(t, h, "recorded-interleaved/step=2", "", "step-interleaved.json")
	train("recorded-pipelined", "pipeline.max_staleness=1", "loss.old_log_probs=recompute")
	save(t, h, "recorded-pipelined", "", "train-pipelined.json")
	save(t, h, "recorded-pipelined/step=2", "", "step-pipelined.json")
	save(t, h, "recorded-pipelined/step=2/sample", "", "sample-pipelined.json")
	h.recordEvaluations(t, "recorded-interleaved")

	sums := filepath.Join(h.cwd, "sums.jsonl")
	writeSums(t, sums)
	chosen := sumsRecipe(sums)
	train("recorded-answering", chosen...)
	train("recorded-chosen", append(chosen, "steps=1", "data="+chosenBy("recorded-answering"))...)
	save(t, h, "recorded-chosen", "", "train-chosen.json")
}

// recordEvaluations writes the histories of a small evaluation, and of one that has shards.
func (h *home) recordEvaluations(t *testing.T, of string) {
	t.Helper()
	for name, perShard := range map[string]string{"evaluate": "6", "evaluate-shards": "3"} {
		h.run(t, "evaluate", of, "--run-id", "recorded-"+name, "--problems", "6", "--samples", "1", "--set",
			"evaluation.shard_problems="+perShard).ok(t)
		save(t, h, "recorded-"+name, "", name+".json")
	}
}

// TestRecordBufferHistories writes the history of a step that learns from its replay buffer.
func TestRecordBufferHistories(t *testing.T) {
	records(t)
	h, _ := needs(t, sharedStack)
	h.run(t, recipe("recorded-buffer", imitating...)...).ok(t)
	save(t, h, "recorded-buffer/step=2", "", "step-buffer.json")
}

// TestRecordSymbolicHistories writes the histories of a step with the stage grade, and of a replay of its reward.
func TestRecordSymbolicHistories(t *testing.T) {
	records(t)
	h := withSympy(t)
	h.trainSymbolic(t, "recorded-symbolic")
	save(t, h, "recorded-symbolic/step=1", "", "step-graded.json")
	c := h.dial(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	input := map[string]any{"run_id": "recorded-symbolic", "step": 1, "from": "reward"}
	require.NoError(t, startFromUI(t, c, workflows.ReplayStageName, "recorded-replay-symbolic", input).Get(ctx, nil))
	save(t, h, "recorded-replay-symbolic", "", "replay-symbolic.json")
}

// TestRecordRoundsHistories writes the history of a step that samples in rounds.
func TestRecordRoundsHistories(t *testing.T) {
	records(t)
	h, _ := needs(t, sharedStack)
	h.run(t, sampledInRounds("recorded-rounds")...).ok(t)
	save(t, h, "recorded-rounds/step=1", "", "step-rounds.json")
}

// TestRecordShardHistories records the histories of a step whose shards are workflows and of one of its shards. It
// records both a second time with a shard that fails for good. The server is real, and the activities do no work.
func TestRecordShardHistories(t *testing.T) {
	records(t)
	c := idleWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := func(id string) client.WorkflowRun {
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueCPU},
			workflows.TrainRunName, workflows.TrainRunInput{Run: id, RecipeYAML: "2 30"})
		require.NoError(t, err)
		return run
	}
	require.NoError(t, start("s002-t30-recorded").Get(ctx, nil))
	saveAs(t, c, workflows.StepWorkflowID("s002-t30-recorded", 1), "", "step-shards.json")
	saveAs(t, c, workflows.ShardWorkflowID("s002-t30-recorded", 1, 1), "", "shard.json")
	failed := start("s002-t30-" + idle.Failing)
	var ended *temporal.WorkflowExecutionError
	eventually(t, func() bool {
		return errors.As(c.GetWorkflow(ctx, workflows.StepWorkflowID(failed.GetID(), 1), "").Get(ctx, nil), &ended)
	}, "the step fails")
	saveAs(t, c, workflows.StepWorkflowID(failed.GetID(), 1), "", "step-shard-failed.json")
	saveAs(t, c, workflows.ShardWorkflowID(failed.GetID(), 1, 1), "", "shard-failed.json")
	require.NoError(t, c.TerminateWorkflow(ctx, failed.GetID(), "", "recorded"))
}

func (h *home) recordKilledWorker(t *testing.T, args []string) {
	t.Helper()
	run := h.start(t, args...)
	worker := h.freezeInMidStep(t, "recorded-killed")
	step := h.record().partialStep("recorded-killed")
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	run.wait(t).ok(t)
	save(t, h, fmt.Sprintf("recorded-killed/step=%d", step), "", "step-worker-killed.json")
}

func (h *home) recordContinueAsNew(t *testing.T, args []string) {
	t.Helper()
	h.run(t, args...).ok(t)
	first := save(t, h, "recorded-long", "", "train-continued.json")
	require.NotEmpty(t, first, "the run has continued as new")
	save(t, h, "recorded-long", first, "train-continues.json")
}

// recordResume has a run go on from its middle with a Temporal that does not know it, so that it is prepared again.
func (h *home) recordResume(t *testing.T, args []string) {
	t.Helper()
	h.ensureDown(t)
	run := h.start(t, args...)
	eventually(t, func() bool { return h.record().heads("recorded-lost") > 0 }, "the first step")
	run.signal(t, syscall.SIGINT)
	require.Equal(t, 130, run.wait(t).code)
	elsewhere, _ := emptyNamespace(t)
	elsewhere = elsewhere.with("ROPEWALK_S3_BUCKET=" + h.namespace)
	elsewhere.run(t, "resume", "recorded-lost").ok(t)
	save(t, elsewhere, "recorded-lost", "", "train-resumed.json")
}

// conversations writes a file of two tasks, of which each trial called a tool.
func (h *home) conversations(t *testing.T) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(h.cwd, "talk.json"), []byte(talk), 0o600))
	return "talk.json"
}

// save writes one history without names of this machine, and returns the execution that it continued.
func save(t *testing.T, h *home, id, run, file string) (before string) {
	t.Helper()
	return saveAs(t, h.dial(t), id, run, file, h.dir, "/home", h.cwd, "/work", root(), "/source", work, "/tmp")
}

// saveAs is save with a list of replacements: each name is followed by its replacement.
func saveAs(t *testing.T, c client.Client, id, run, file string, names ...string) (before string) {
	t.Helper()
	history := &historypb.History{}
	for events := fetch(c, id, run); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if a := event.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			before = a.ContinuedExecutionRunId
		}
		history.Events = append(history.Events, event)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	anonymous := strings.NewReplacer(append([]string{"@" + host + "@", "@host@", `"host":"` + host + `"`,
		`"host":"host"`, host + ":", "host:"}, names...)...)
	scrub(history.ProtoReflect(), anonymous)
	text, err := protojson.Marshal(history)
	require.NoError(t, err)
	path := filepath.Join(root(), "workflows", "testdata", file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o644))
	return before
}

func fetch(c client.Client, id, run string) client.HistoryEventIterator {
	return c.GetWorkflowHistory(context.Background(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
}

// scrub replaces names in every string and payload of a message.
func scrub(m protoreflect.Message, names *strings.Replacer) {
	replace := func(f protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
		switch f.Kind() {
		case protoreflect.StringKind:
			return protoreflect.ValueOfString(names.Replace(v.String()))
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes([]byte(names.Replace(string(v.Bytes()))))
		case protoreflect.MessageKind:
			scrub(v.Message(), names)
		}
		return v
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			for i := range v.List().Len() {
				v.List().Set(i, replace(f, v.List().Get(i)))
			}
		case f.IsMap():
			v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				v.Map().Set(key, replace(f.MapValue(), value))
				return true
			})
		default:
			m.Set(f, replace(f, v))
		}
		return true
	})
}
