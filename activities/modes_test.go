package activities_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/internal/testing/openaitest"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// few makes the runs of test/bytes take a second.
var few = []string{"steps=2", "rollout.prompts=4", "rollout.shard_groups=2", "evaluation.problems=3",
	"evaluation.greedy=false"}

// In both modes a run commits the same: rows, weights, and in every manifest the same inputs, figures and results. A
// golden file holds what its stages are made from, and in which order stages and activities follow each other.
func TestBothModesCommitTheSame(t *testing.T) {
	for _, c := range append(byteCases(t),
		byteCase{"plain", "tiny", nil},
		byteCase{"critic", "tiny", slices.Clip(actorCritic)},
		byteCase{"buffer", "tiny", slices.Clip(imitating)},
	) {
		t.Run(c.name, func(t *testing.T) {
			staged, want := c.train(t, "staged")
			interleaved, got := c.train(t, "interleaved")
			require.Equal(t, committedBy(t, staged.store), committedBy(t, interleaved.store))
			order := chains(want.stages(t))
			require.Equal(t, order, chains(got.stages(t)))
			golden.Check(t, "order/"+c.name+".txt", "Inputs of the stages:\n"+inputsOf(t, staged.store)+
				"\nStages in the order of their manifests:\n"+order+
				"\nActivities as they started, staged:\n"+chains(want.started)+
				"\nActivities as they started, interleaved:\n"+chains(got.started), *update)
		})
	}
}

// byteCase is a run of test/bytes/cases.txt.
type byteCase struct {
	name, recipe string
	set          []string
}

func byteCases(t *testing.T) (out []byteCase) {
	t.Helper()
	here, err := filepath.Abs("../test/bytes")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(here, "cases.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(strings.ReplaceAll(string(text), "HERE", here)) {
		line = strings.TrimRight(line, "\n")
		if set, ok := strings.CutPrefix(line, "\t"); ok {
			last := &out[len(out)-1]
			last.set = append(last.set, set)
		} else if name, recipe, ok := strings.Cut(line, " "); ok && name != "#" {
			out = append(out, byteCase{name: name, recipe: recipe})
		}
	}
	require.Len(t, out, 7)
	return out
}

// train trains the run r in a mode, as tools/check-bytes.sh does.
func (c byteCase) train(t *testing.T, mode string) (*bench, *recorder) {
	t.Helper()
	in := workflows.TrainRunInput{Run: "r", Recipe: c.recipe, Set: slices.Concat(few, c.set,
		[]string{"rollout.mode=" + mode})}
	if c.recipe == "tiny" {
		text, err := os.ReadFile("../test/e2e/testdata/tiny.yaml")
		require.NoError(t, err)
		in.Recipe, in.RecipeYAML = "", string(text)
	}
	switch c.name {
	case "function":
		t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	case "judge", "skipped":
		t.Setenv("ROPEWALK_BYTES_JUDGE", bytesJudge(t))
	}
	objects := faults.New(mem.New())
	b := newBench(t, objects)
	env := pipelinetest.Environment(b.deps)
	seen := &recorder{objects: objects}
	seen.watch(env)
	skipped := &decided{}
	if c.name == "skipped" {
		env.RegisterDelayedCallback(func() { env.UpdateWorkflow(workflows.UpdateSkip, "skip", skipped) }, time.Hour)
	}
	lendWarmStarts(t, objects)
	_, err := pipelinetest.Run[workflows.TrainRunResult](env, workflows.TrainRunName, in)
	require.NoError(t, err)
	require.Equal(t, c.name == "skipped", skipped.accepted)
	keepWarmStarts(t, objects)
	return b, seen
}

// decided takes the answer to an update.
type decided struct{ accepted bool }

func (a *decided) Accept()           { a.accepted = true }
func (*decided) Reject(error)        {}
func (*decided) Complete(any, error) {}

// bytesJudge is test/bytes/judge.py.
func bytesJudge(t *testing.T) string {
	return openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) {
		_, question, _ := strings.Cut(r.User(), "[question ")
		_, question, _ = strings.Cut(question, "]\n")
		question, _, _ = strings.Cut(question, "\n[end of question ")
		model := r.Model
		if model == "absent" && crc32.ChecksumIEEE([]byte(question))%5 == 0 {
			model = "another"
		}
		verdict := []string{"Match", "Mismatch"}[crc32.ChecksumIEEE([]byte(r.User()))%2]
		openaitest.SayAs(w, model, verdict, "stop")
	}).URL
}

// manifests returns the manifests of the run r, without measured times.
func manifests(t *testing.T, objects store.Store) (out []schema.Manifest) {
	t.Helper()
	for _, key := range keys(t, objects) {
		if !strings.HasPrefix(key, schema.ManifestsPrefix("r")) || strings.Contains(key, "timings") {
			continue
		}
		at, err := schema.ParseManifestKey(key)
		require.NoError(t, err)
		out = append(out, manifestAt(t, objects, at))
	}
	require.NotEmpty(t, out)
	return out
}

// committedBy describes what the run r has committed, as far as it must not depend on the mode: a manifest names its
// inputs and parts by digests, which depend on the recipe and so on the mode, and documents hold the recipe.
func committedBy(t *testing.T, objects store.Store) (out []string) {
	t.Helper()
	for _, m := range manifests(t, objects) {
		m.Config = ""
		for _, refs := range [][]schema.Ref{m.Inputs, m.Parts} {
			for i := range refs {
				refs[i].Digest = ""
			}
		}
		m.Shards = slices.DeleteFunc(m.Shards, func(s schema.ShardInfo) bool { return s.Table == schema.Documents })
		text, err := json.Marshal(m)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}

// inputsOf lists for each stage the stages that its manifests name as inputs.
func inputsOf(t *testing.T, objects store.Store) string {
	t.Helper()
	made := map[string][]string{}
	for _, m := range manifests(t, objects) {
		made[m.Stage] = append(made[m.Stage], "")
		for _, in := range m.Inputs {
			at, err := schema.ParseManifestKey(in.Key)
			require.NoError(t, err)
			if at.Turn >= 0 && slices.Contains([]string{schema.StageRollout, schema.StageAssemble}, m.Stage) {
				at.Stage = "turns" // the last one has calls or not, which depends on the machine
			}
			made[m.Stage] = append(made[m.Stage], at.Stage)
		}
	}
	var lines []string
	for stage, from := range made {
		slices.Sort(from)
		lines = append(lines, fmt.Sprintf("%s:%s\n", stage, strings.Join(slices.Compact(from), " ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// link is a stage or an activity at a step and, if it belongs to one, a shard.
type link struct {
	at   string
	name string
}

// chains lists what follows each other, for each step and for each shard of a step, because one does not wait for the
// other. How often the turns of a shard repeat depends on the machine, so that each name counts once.
func chains(links []link) string {
	names, places := map[string][]string{}, map[string][]string{}
	for _, l := range links {
		if !slices.Contains(names[l.at], l.name) {
			names[l.at] = append(names[l.at], l.name)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(names)) {
		if at == "alongside" {
			slices.Sort(names[at])
		}
		chain := strings.Join(names[at], " ")
		places[chain] = append(places[chain], at)
	}
	var lines []string
	for chain, at := range places {
		lines = append(lines, strings.Join(at, "; ")+": "+chain+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// placed is where a stage or an activity belongs. What runs alongside a step follows none of its stages.
func placed(name, step string, shard int) link {
	switch {
	case slices.ContainsFunc(stages.All(), func(s stages.Stage) bool {
		return s.Phase == stages.Alongside && (s.Name == name ||
			slices.ContainsFunc(s.Activities, func(a stages.Activity) bool { return a.Name == name }))
	}), slices.Contains([]string{"NoteState", "NoteDeed"}, name):
		return link{"alongside", name}
	case shard >= 0:
		return link{fmt.Sprintf("step %s, shard %d", step, shard), name}
	}
	return link{"step " + step, name}
}

// recorder notes which activities start, and reads from the store's log which manifests are committed.
type recorder struct {
	objects *faults.Store
	mu      sync.Mutex
	started []link
}

// stages lists the stages in the order in which their manifests were committed.
func (r *recorder) stages(t *testing.T) (out []link) {
	t.Helper()
	for _, c := range r.objects.Log() {
		if c.Op != faults.PutIfAbsent || !strings.HasPrefix(c.Key, schema.ManifestsPrefix("r")) ||
			strings.Contains(c.Key, "timings") {
			continue
		}
		at, err := schema.ParseManifestKey(c.Key)
		require.NoError(t, err)
		out = append(out, placed(at.Stage, at.Step, at.Shard))
	}
	return out
}

// watch notes the activities that an environment starts. Their inputs hold the step and, where there is one, the shard.
func (r *recorder) watch(env *testsuite.TestWorkflowEnvironment) {
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in struct{ Step, Shard *int }
		step, shard := schema.InitStep, -1
		if err := args.Get(&in); err == nil && in.Step != nil && *in.Step >= 0 {
			step = strconv.Itoa(*in.Step)
		}
		if in.Shard != nil {
			shard = *in.Shard
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.started = append(r.started, placed(info.ActivityType.Name, step, shard))
	})
}
