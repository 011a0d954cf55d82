// Package recordtest commits small runs for tests, manifest by manifest the way the activities do:
// shards, parts, stage manifests, heads, checkpoints, evaluations and measured times.
//
// A run is 3 groups of 4 samples a step in 2 shards. At step s the first s samples of groups 0 and 1
// are right, of group 2 all: so group 2 has no variance and is dropped whole; of the others
// sample 3 is dropped as a surplus negative. Samples 0 and 2 call a tool in turn 0 (that of sample 2 fails) and
// answer in turn 1; samples 1 and 3 answer at once. Stages of a step execute one after the other, a
// second each, with a quarter of a second between.
package recordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// The shape of a step.
const (
	Groups  = 3
	Samples = 4
	Shards  = 2 // groups 0 and 1, group 2
	Calls   = 2 // of each group
)

// Code is the digest of the program that made the runs.
var Code = schema.Digest([]byte("the program"))

// Options describe the run to make.
type Options struct {
	Run     string
	Steps   int
	Planned int    // steps of the recipe; Steps when 0
	Seed    uint64 // of the recipe
	Created string // RFC 3339
	// Open leaves the last step without its head, as a step in progress.
	Open bool
	// Stopped commits the change by which a person stops the run after its last step, and the evaluation after it.
	Stopped bool
	// Broken gives the reason why the engine failed on trajectories in their first turn, by their ids.
	Broken map[string]string
	// Skipped is the step whose last shard was skipped; none when 0.
	Skipped int
	// Buffer adds a replay buffer that holds kept, right trajectories and is trained on at every third step.
	Buffer bool
	// Outputs makes the stage logprobs compute old log-probabilities of the kept trajectories, and the
	// updates use a reference.
	Outputs bool
	// Gradings makes the stage grade compare each wrong answer with its gold answer, without success.
	Gradings bool
	// Critic makes the updates train a critic.
	Critic bool
	// SharedBase makes every update's checkpoint share the warm start's weights, as with an adapter.
	SharedBase bool
	// Policy, if not nil, returns the files of a step's checkpoint by name; otherwise they are texts that no engine
	// reads.
	Policy func(step int) map[string][]byte
	// EvaluateAt evaluates the policy after these steps too: the number of solved problems, of 4.
	EvaluateAt map[int]int
	// Episodes makes evaluations record their episodes.
	Episodes bool
	// Trace is the id of the trace that the measured times are in; "" if the run is not traced.
	Trace string
}

// Span is the id of every span of a run that is traced.
const Span = "b7ad6b7169203331"

// Run is a committed run.
type Run struct {
	Options
	Store   store.Store
	Prepare schema.Ref
	// Updates are the steps' update manifests; index 0 is the warm start's.
	Updates []schema.Manifest

	t      testing.TB
	writer *commit.Writer
	config string // digest of the recipe
	policy schema.Ref
	buffer schema.Ref // after the step before
	// evaluated is the last evaluation, until a publication names it.
	evaluated []schema.Ref
	held      []schema.ReplayRow
	// tokenizer is put into every checkpoint where it is not nil.
	tokenizer []byte
	clock     int64 // Unix microseconds
	timings   []schema.TimingRow
	timed     []schema.Ref // manifests of measured times that the next step's name
}

// Start is when a run's first stage starts, in Unix microseconds.
const Start = 1_700_000_000_000_000

// Train commits a whole run.
func Train(t testing.TB, objects store.Store, o Options) *Run {
	t.Helper()
	r := &Run{Options: o, Store: objects, t: t, writer: commit.New(objects), clock: Start}
	if r.Planned == 0 {
		r.Planned = o.Steps
	}
	r.prepare()
	r.warmStart()
	r.evaluate(-1, "warm_start", 1)
	r.recordTimings(-1, "timings_run")
	for step := 1; step <= o.Steps; step++ {
		r.step(step)
		if right, ok := o.EvaluateAt[step]; ok {
			r.evaluate(step, "step", right)
			r.recordTimings(step, "timings_run")
		}
	}
	if o.Stopped {
		r.stop()
	}
	if (o.Steps == r.Planned || o.Stopped) && !o.Open {
		r.evaluate(o.Steps, "final", 3)
		r.commit(r.manifest(r.place(o.Steps, schema.StageEnd), append([]schema.Ref{r.policy}, r.evaluated...)...))
		r.recordTimings(o.Steps, "timings_run")
	}
	return r
}

func (r *Run) prepare() {
	document := r.recipe()
	text := r.canonical(document)
	r.config = schema.Digest(text)
	place := schema.AtInit(r.Run, schema.StagePrepare)
	m := schema.NewManifest(place, Code, r.config)
	m.Shards = append(m.Shards, r.document(place, document))
	m.Note = map[string]string{"recipe": "fixture", "seed": strconv.FormatUint(r.Seed, 10)}
	r.Prepare = r.commit(m)
	entry := r.canonical(map[string]any{"run": r.Run, "recipe": "fixture", "seed": r.Seed, "steps": r.Planned,
		"created": r.Created})
	require.NoError(r.t, r.Store.PutIfAbsent(context.Background(), "catalogue/"+r.Run+".json", entry))
}

// recipe is the part of the run's recipe that fixtures have.
func (r *Run) recipe() map[string]any {
	return map[string]any{"name": "fixture", "seed": r.Seed, "steps": r.Planned}
}

// canonical is a value as the text of a document.
func (r *Run) canonical(value any) []byte {
	text, err := schema.Canonical(value)
	require.NoError(r.t, err)
	return text
}

func (r *Run) document(place schema.Place, value any) schema.ShardInfo {
	info, err := commit.PutDocument(context.Background(), r.writer, place, value)
	require.NoError(r.t, err)
	return info
}

func (r *Run) commit(m schema.Manifest) schema.Ref {
	_, ref, _, err := r.writer.Commit(context.Background(), m)
	require.NoError(r.t, err)
	return ref
}

// stop commits an amendment that makes the last step the run's last, after one that changed nothing.
func (r *Run) stop() {
	document := r.recipe()
	for i, note := range []string{schema.NoteVoid, schema.NoteChanges} {
		if note == schema.NoteChanges {
			document["steps"] = r.Steps
		}
		place := schema.AtInit(r.Run, schema.StageAmend).WithTry(i)
		text := r.canonical(document)
		m := schema.NewManifest(place, Code, schema.Digest(text))
		m.Inputs = []schema.Ref{r.Prepare}
		m.Shards = append(m.Shards, r.document(place, document))
		m.Note = map[string]string{"from_step": strconv.Itoa(r.Steps + 1), note: fmt.Sprintf("steps=%d", r.Steps)}
		r.commit(m)
	}
}

// warmStart commits a warm start outside the run, which other runs share, and the run's own manifest of it.
func (r *Run) warmStart() {
	inputs := map[string]any{"seed": r.Seed}
	text := r.canonical(inputs)
	place := schema.AtWarmStart(schema.Digest(text))
	made := schema.NewManifest(place, Code, schema.Digest(text))
	made.Shards = append(made.Shards, r.document(place, inputs))
	checkpoint := r.checkpoint(place, 0)
	made.Checkpoint = &checkpoint
	m := r.manifest(schema.AtInit(r.Run, schema.StageWarmStart), r.commit(made))
	m.Checkpoint = &checkpoint
	r.policy = r.commit(m)
	r.Updates = append(r.Updates, m)
	r.spend(schema.StageWarmStart, -1, -1, 0, 0)
}

// checkpoint stores the files of a step's policy.
func (r *Run) checkpoint(place schema.Place, step int) schema.Checkpoint {
	type file struct{ name, text string }
	files := []file{
		{"config.json", "{}\n"},
		{"model.safetensors", fmt.Sprintf("weights of seed %d step %d", r.Seed, r.weightsOf(step))},
		{"optimizer.state", fmt.Sprintf("moments of seed %d step %d", r.Seed, step)},
	}
	if r.Policy != nil {
		files = nil
		for _, name := range slices.Sorted(maps.Keys(r.Policy(step))) {
			files = append(files, file{name, string(r.Policy(step)[name])})
		}
	}
	if r.tokenizer != nil {
		files = append(files, file{"tokenizer.json", string(r.tokenizer)})
	}
	lines := ""
	for _, f := range files {
		lines += f.name + " " + schema.Digest([]byte(f.text)) + "\n"
	}
	out := schema.Checkpoint{Digest: schema.Digest([]byte(lines))}
	out.Prefix = place.CheckpointPrefix(fmt.Sprintf("%06d-%s", step, out.Digest[:16]))
	for _, f := range files {
		if f.name == "model.safetensors" && r.weightsOf(step) < step {
			base := *r.Updates[0].Checkpoint
			for _, f := range base.Files {
				if f.Name == "model.safetensors" {
					f.At = base.Key(f)
					out.Files = append(out.Files, f)
				}
			}
			continue
		}
		digest, err := r.writer.Blob(context.Background(), out.Prefix+f.name, []byte(f.text))
		require.NoError(r.t, err)
		out.Files = append(out.Files, schema.CheckpointFile{Name: f.name, Digest: digest, Bytes: int64(len(f.text))})
	}
	return out
}

// weightsOf returns the step whose weights a step's checkpoint has.
func (r *Run) weightsOf(step int) int {
	if r.SharedBase {
		return 0
	}
	return step
}

// Prune deletes the files of a step's checkpoint and leaves the note of it.
func (r *Run) Prune(step int) {
	c := *r.Updates[step].Checkpoint
	note := r.canonical(map[string]any{"checkpoint": c, "why": "for the test"})
	require.NoError(r.t, r.Store.PutIfAbsent(context.Background(), c.Prefix+schema.PrunedFile, note))
	for _, f := range c.Files {
		if f.At != "" {
			continue
		}
		require.NoError(r.t, r.Store.Delete(context.Background(), c.Prefix+f.Name))
	}
}

// manifest starts a manifest as the activities do: the recipe's manifest is its first input.
func (r *Run) manifest(place schema.Place, inputs ...schema.Ref) schema.Manifest {
	m := schema.NewManifest(place, Code, r.config)
	m.Inputs = append([]schema.Ref{r.Prepare}, inputs...)
	return m
}

// put commits rows as the one shard of a place.
func put[R schema.Row](r *Run, m schema.Manifest, rows []R) schema.Ref {
	addShard(r, &m, rows)
	return r.commit(m)
}

// putBatch commits the rows of a training batch.
func (r *Run) putBatch(m schema.Manifest, rows []schema.BatchRow) schema.Ref {
	data, err := schema.EncodeBatch(rows)
	require.NoError(r.t, err)
	info, err := r.writer.Shard(context.Background(), m.Place, schema.Batch, data, len(rows))
	require.NoError(r.t, err)
	m.Shards = append(m.Shards, info)
	return r.commit(m)
}

// spend records one activity: a second of work after a quarter of a second without any.
func (r *Run) spend(stage string, shard, turn int, rows, tokens int64) {
	start := r.clock + 250_000
	r.clock = start + 1_000_000
	r.timings = append(r.timings, schema.TimingRow{
		Stage: stage, Shard: int32(shard), Turn: int32(turn), Kind: "activity", Call: -1,
		StartMicros: start, EndMicros: new(r.clock), Attempt: 1, Host: "host", Rows: rows, Tokens: tokens,
	})
	t := &r.timings[len(r.timings)-1]
	t.Traced(r.Trace, Span)
	if stage == schema.StageUpdate { // as an engine on a GPU measures it
		t.DevicePeakBytes, t.DeviceUtilisation, t.MFU, t.TrainTokensPerS = new(int64(3)<<30), new(0.9), new(0.4),
			new(12000.0)
	}
}

func (r *Run) place(step int, stage string) schema.Place {
	if step < 0 {
		return schema.AtInit(r.Run, stage)
	}
	return schema.At(r.Run, step, stage)
}

// recordTimings commits measured times, which name those before them.
func (r *Run) recordTimings(step int, stage string) {
	if stage == "timings_step" {
		defer func() { r.timed = r.timed[len(r.timed)-1:] }()
	}
	r.timed = append(r.timed, put(r, r.manifest(r.place(step, stage), r.timed...), r.timings))
	r.timings = nil
}

// evaluate commits an evaluation of 4 problems, of which the first right ones are solved.
func (r *Run) evaluate(step int, tag string, right int) {
	m := r.manifest(r.place(step, schema.StageEvaluate), r.policy)
	var rows []schema.EvaluationRow
	for p := range 4 {
		for sample := range 2 {
			rows = append(rows, schema.EvaluationRow{
				Tag: tag, ProblemID: fmt.Sprintf("problem-%d", p), Level: int32(2 + p%2), Sample: int32(sample),
				Success: p < right, Turns: 1, Tokens: 12, Gold: "4",
				PolicyVersion: r.Updates[len(r.Updates)-1].Checkpoint.Digest,
			})
		}
	}
	if r.Episodes {
		r.addEpisodes(&m, step, rows)
	}
	r.putEvaluation(m, rows)
}

// putEvaluation commits an evaluation that states what its rows give.
func (r *Run) putEvaluation(m schema.Manifest, rows []schema.EvaluationRow) {
	schema.Sort(rows)
	said := api.Evaluated{Summary: evaluation.Summarise(evaluation.Sampled(rows), r.Seed)}
	if said.Summary.Tokens == 0 { // the rows do not say what was written
		said.Summary.Tokens = int64(len(rows))
	}
	note, err := json.Marshal(said)
	require.NoError(r.t, err)
	m.Stats = map[string]float64{
		"success": said.Summary.Success, "greedy": said.Summary.Greedy,
		schema.StatRows: float64(len(rows)), schema.StatTokens: float64(said.Summary.Tokens),
	}
	m.Note = map[string]string{schema.NoteResult: string(note)}
	r.evaluated = []schema.Ref{put(r, m, rows)}
	r.spend(schema.StageEvaluate, -1, -1, int64(len(rows)), 96)
}

// publish commits a step's publication, which names the evaluation before it.
func (r *Run) publish(step int, update schema.Ref) schema.Ref {
	inputs := append([]schema.Ref{update}, r.evaluated...)
	r.evaluated = nil
	return r.commit(r.manifest(schema.At(r.Options.Run, step, schema.StagePublish), inputs...))
}
