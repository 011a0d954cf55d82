package activities_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

var inFlight = []string{"steps=3", "pipeline={max_staleness: 1, in_flight: true}", "rollout.mode=interleaved",
	"loss.old_log_probs=recompute", "loss.tis={}", "checkpoint.keep_last=9"}

// handovers makes each step's policy be published in the middle of the next step's rollout: its head waits until calls
// of two shards are there, and the calls wait for the head.
type handovers struct {
	store.Store
	inner sandbox.Executor
	steps int

	mu      sync.Mutex
	changed *sync.Cond
	shards  map[string]map[bool]bool // by step, whether calls of the first shard, and of the second, are there
	heads   map[string]bool          // whether the head of a step is put
}

func newHandovers(objects store.Store, steps int) *handovers {
	h := &handovers{Store: objects, steps: steps, shards: map[string]map[bool]bool{}, heads: map[string]bool{}}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *handovers) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	_, step, err := schema.ParseHeadKey(key)
	n, numbered := schema.Place{Step: step}.StepNumber()
	if err != nil || !numbered {
		return h.Store.PutIfAbsent(ctx, key, data)
	}
	h.mu.Lock()
	for next := schema.At("r", n+1, "").Step; n < h.steps && len(h.shards[next]) < 2; {
		h.changed.Wait()
	}
	h.mu.Unlock()
	err = h.Store.PutIfAbsent(ctx, key, data)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heads[step] = true
	h.changed.Broadcast()
	return err
}

func (h *handovers) wait(trace string) {
	parts := strings.Split(trace, "/") // step, group, sample, turn, call
	n, group, err := schema.ParseGroupID(parts[0] + "/" + parts[1])
	if err != nil || n < 2 || n > h.steps { // of an evaluation, or of the first step
		return
	}
	step, before := schema.At("r", n, "").Step, schema.At("r", n-1, "").Step
	h.mu.Lock()
	if h.shards[step] == nil {
		h.shards[step] = map[bool]bool{}
	}
	h.shards[step][group < 4] = true
	h.changed.Broadcast()
	for !h.heads[before] {
		h.changed.Wait()
	}
	h.mu.Unlock()
}

// trainInFlight trains the tests' recipe with each policy published in the middle of the next step's rollout.
func trainInFlight(t *testing.T, objects store.Store, set ...string) {
	t.Helper()
	h := newHandovers(objects, 3)
	b := &bench{store: h, record: commit.New(h)}
	b.deps = pipelinetest.Deps(t, h, pipelinetest.Wrap{Sandbox: func(e sandbox.Executor) sandbox.Executor {
		h.inner = e
		return executor{h}
	}})
	b.deps.LookEvery = time.Nanosecond
	trainTiny(t, b, "r", append(append([]string{}, inFlight...), set...)...)
}

// executor is handovers as an executor.
type executor struct{ h *handovers }

func (e executor) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	for _, c := range calls {
		e.h.wait(c.Trace)
	}
	return e.h.inner.Run(ctx, calls)
}

func (e executor) Close() error { return e.h.inner.Close() }

// versionsIn returns the version of each turn, by trajectory.
func versionsIn(rows []schema.TurnRow) map[string][]string {
	schema.Sort(rows)
	out := map[string][]string{}
	for _, r := range rows {
		out[r.TrajectoryID] = append(out[r.TrajectoryID], r.PolicyVersion)
	}
	return out
}

// Turns that begin after a policy was published are its own, in the middle of a rollout. The record replays.
func TestAnInFlightRun(t *testing.T) {
	objects := mem.New()
	trainInFlight(t, objects)
	made := policies(t, objects, "r", 3)
	require.NotEqual(t, made[0], made[1])
	for step := 1; step <= 3; step++ {
		mixed := 0
		for _, row := range stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout) {
			lag := 0
			if row.PolicyVersion != made[step-1] {
				lag = 1
			}
			require.EqualValues(t, lag, *row.Lag, "step %d: turn %d of %s", step, row.Turn, row.TrajectoryID)
		}
		for id, versions := range versionsIn(stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout)) {
			old, newest := made[max(step-2, 0)], made[step-1]
			for i, v := range versions {
				require.Contains(t, []string{old, newest}, v, "step %d: %s", step, id)
				require.False(t, i > 0 && v == old && versions[i-1] != old, "%s goes back to an earlier version", id)
			}
			if versions[0] != versions[len(versions)-1] {
				mixed++
			}
		}
		if step == 2 {
			require.Positive(t, mixed, "trajectories of two versions")
		}
	}
	requireNamed(t, objects)
	requireLogProbs(t, objects, 2, made)
	requireSound(t, objects, "r")
	t.Run("replay", func(t *testing.T) {
		for _, from := range []string{"reward", "resample", "advantage"} {
			out, err := runReplay(t, copied(t, objects), workflows.ReplayStageInput{Run: "r", Step: 2, From: from})
			require.NoError(t, err)
			for _, s := range out.Stages {
				require.True(t, s.Same, s.Stage)
			}
		}
	})
	t.Run("resumed", func(t *testing.T) { resumedInFlight(t, objects, made) })
}

// requireNamed requires that a turn's manifest names the policies that wrote it.
func requireNamed(t *testing.T, objects store.Store) {
	t.Helper()
	record := commit.New(objects)
	updated, ref, found, err := record.Lookup(t.Context(), schema.At("r", 1, schema.StageUpdate))
	require.NoError(t, err)
	require.True(t, found)
	named := 0
	for shard := range 2 {
		m, _, found, err := record.Lookup(t.Context(), schema.At("r", 2, schema.StageRollout).WithTurn(1).
			WithShard(shard))
		require.NoError(t, err)
		require.True(t, found)
		rows, err := commit.Rows[schema.TurnRow](t.Context(), record, m)
		require.NoError(t, err)
		for _, r := range rows {
			if r.PolicyVersion == updated.Checkpoint.Digest {
				require.Contains(t, m.Inputs, ref)
				named++
			}
		}
	}
	require.Positive(t, named)
}

// requireLogProbs requires that a turn has the log-probabilities of the version that it names, after all turns before
// it, and not those of the other: no state of the earlier weights is left in the engine.
func requireLogProbs(t *testing.T, objects store.Store, step int, made []string) {
	t.Helper()
	record, engines := commit.New(objects), map[string]policy.Engine{}
	for n := step - 2; n < step; n++ {
		place := schema.At("r", n, schema.StageUpdate)
		if n == 0 {
			place = schema.AtInit("r", schema.StageWarmStart)
		}
		m, _, found, err := record.Lookup(t.Context(), place)
		require.NoError(t, err)
		require.True(t, found)
		dir := t.TempDir()
		for _, f := range m.Checkpoint.Files {
			require.NoError(t, record.FetchFile(t.Context(), m.Checkpoint.Key(f), f.Digest, f.Bytes,
				filepath.Join(dir, f.Name)))
		}
		e, err := cpu.Open(cpu.Options{Threads: 2})
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
		engines[made[n]] = e
	}
	rows := stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout)
	schema.Sort(rows)
	var tokens, prefix []int32
	var own, sampled, others []float64
	for _, r := range rows {
		if r.Turn == 0 {
			prefix = nil
		}
		tokens = append(prefix[:len(prefix):len(prefix)], r.TokenIDs...)
		if r.Turn > 0 && r.Excluded == nil {
			for version, e := range engines {
				out, err := e.Forward(t.Context(), policy.ForwardRequest{Role: policy.RolePolicy,
					Sequences: [][]int32{tokens}, Temperature: 1, Outputs: policy.OutLogProb})
				require.NoError(t, err)
				for i, m := range r.LossMask {
					if m == 0 {
						continue
					}
					p := float64(out.LogProbs[0][len(prefix)+i])
					if version == r.PolicyVersion {
						own, sampled = append(own, p), append(sampled, float64(r.LogProbs[i]))
					} else {
						others = append(others, p)
					}
				}
			}
		}
		prefix = tokens
	}
	require.NotEmpty(t, own)
	require.InDeltaSlice(t, sampled, own, 1e-3)
	require.NotEqual(t, own, others)
}

// A run whose workers died in the middle of a step's rollout keeps the turns that are committed, of the version that
// wrote them, and goes on with the newest.
func resumedInFlight(t *testing.T, objects store.Store, made []string) {
	other := mem.New()
	for _, key := range keys(t, objects) {
		if _, head, err := schema.ParseHeadKey(key); err == nil && later(key, 1, false) {
			require.NotEqual(t, "1", head)
			continue
		}
		p, err := schema.ParseManifestKey(key)
		begun := err == nil && p.Step == schema.At("r", 2, "").Step &&
			(p.Stage == schema.StagePrompts || p.Stage == schema.StageRollout && p.Turn == 0 && p.Shard >= 0)
		if err == nil && !begun && later(key, 1, false) {
			continue
		}
		data, err := objects.Get(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, other.Put(t.Context(), key, data))
	}
	_, err := newBench(t, other).train(t, workflows.TrainRunInput{Run: "r", Resume: true})
	require.NoError(t, err)
	before := stepRows[schema.TurnRow](t, objects, "r", 2, schema.StageRollout)
	after := stepRows[schema.TurnRow](t, other, "r", 2, schema.StageRollout)
	first := func(rows []schema.TurnRow) (out []schema.TurnRow) {
		for _, r := range rows {
			if r.Turn == 0 {
				out = append(out, r)
			}
		}
		return out
	}
	require.Equal(t, first(before), first(after))
	require.Less(t, len(first(after)), len(after))
	for _, r := range after {
		if r.Turn > 0 {
			require.Equal(t, made[1], r.PolicyVersion, "%s turn %d", r.TrajectoryID, r.Turn)
		}
	}
	requireSound(t, other, "r")
}

// Groups whose turns are of several versions are dropped, and no others for that reason. A worker dies in the middle of
// the rollout, and the next attempt goes on. A replay can keep the groups.
func TestAnInFlightRunThatDropsMixedGroups(t *testing.T) {
	objects := mem.New()
	killed := faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=2/rollout/turn=1", Nth: 1})
	trainInFlight(t, killed, "pipeline.mixed_groups=drop")
	require.Less(t, 2, killed.Count(faults.PutIfAbsent, "manifests/step=2/rollout/turn=1"), "more than once a shard")
	dropped := 0
	for step := 1; step <= 3; step++ {
		versions := map[string]map[string]bool{}
		for _, r := range stepRows[schema.TurnRow](t, objects, "r", step, schema.StageRollout) {
			if versions[r.GroupID] == nil {
				versions[r.GroupID] = map[string]bool{}
			}
			versions[r.GroupID][r.PolicyVersion] = true
		}
		for _, r := range stepRows[schema.SelectionRow](t, objects, "r", step, schema.StageResample) {
			mixed := len(versions[r.GroupID]) > 1
			require.Equal(t, mixed, r.Reason == string(resample.MixedVersions), "step %d: %s", step, r.TrajectoryID)
			if mixed {
				require.False(t, r.Kept)
				dropped++
			}
		}
	}
	require.Positive(t, dropped)
	requireSound(t, objects, "r")
	out, err := runReplay(t, copied(t, objects), workflows.ReplayStageInput{Run: "r", Step: 2, From: "resample",
		Through: "resample", Set: []string{"pipeline.mixed_groups=keep"}})
	require.NoError(t, err)
	require.False(t, out.Stages[0].Same)
}

// What cannot have turns of several versions in a step is refused with the setting.
func TestInFlightRecipesThatCannotRun(t *testing.T) {
	b := newBench(t, mem.New())
	for name, c := range map[string]struct{ set, want string }{
		"nothing runs ahead": {"pipeline.max_staleness=0", "with pipeline.max_staleness: 0 none does"},
		"staged":             {"rollout.mode=staged", "pipeline.in_flight: wants rollout.mode: interleaved"},
		"servers": {"engine.servers=[{kind: vllm, url: 'http://127.0.0.1:1', model: m, folder: /tmp}]",
			"pipeline.in_flight: has no place with engine.servers"},
		"trees": {"rollout.tree={rule: aepo, roots: 4}", "pipeline.in_flight: has no place with rollout.tree"},
		"the sampler's log-probabilities": {"loss.old_log_probs=rollout",
			"pipeline.max_staleness: samples from earlier versions"},
		"nothing is mixed": {"pipeline={max_staleness: 1, mixed_groups: drop}",
			"pipeline.mixed_groups: drop wants pipeline.in_flight: true"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trainTinyError(t, b, "r", append(append([]string{}, inFlight...), "loss.tis=null", c.set)...)
			require.ErrorContains(t, err, c.want)
		})
	}
}
