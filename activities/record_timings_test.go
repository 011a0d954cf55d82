package activities

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/upkeep"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/tracetest"
	"github.com/ropewalk/ropewalk/schema"
)

// The measured times of calls are committed before their stage: whenever a worker ends, a committed stage has them.
func TestCallsTimesAreThereOnceTheirStageIs(t *testing.T) {
	b, _ := callingBench(t, &printer{})
	objects := faults.New(b.deps.Store)
	b.deps.Store = objects
	UseRecord(b.deps, commit.New(objects))
	in := api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy}
	first, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	tools := api.ToolsInput{Scope: b.scope, Prompts: b.prompts, Past: api.Past{Last: first.Manifest}}
	_, err = do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, tools)
	require.NoError(t, err)
	var committed []string
	for _, call := range objects.Log() {
		if call.Op == faults.PutIfAbsent && strings.Contains(call.Key, "/manifests/") {
			place, err := schema.ParseManifestKey(call.Key)
			require.NoError(t, err)
			committed = append(committed, place.Stage)
		}
	}
	times, stage := slices.Index(committed, "timings_calls"), slices.Index(committed, schema.StageSandbox)
	require.True(t, 0 <= times && times < stage, "%v", committed)
}

// An execution that finds its stage committed reports that it did not do the work, and its row says so.
func TestAnAdoptedStagesTimesAreMarked(t *testing.T) {
	b, _ := callingBench(t, &printer{})
	in := api.GenerateInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy}
	first, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.False(t, first.Timing.Adopted)
	again, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.True(t, again.Timing.Adopted)
	require.Equal(t, first.Manifest, again.Manifest)

	first.Timing.Stage = "a" // separate rows
	_, err = do(b, upkeep.RecordTimings{Worker: b.deps}.Execute, api.RecordTimingsInput{Scope: b.scope, Part: "step",
		Timings: []api.Timing{first.Timing, again.Timing}})
	require.NoError(t, err)
	_, ref, found, err := b.deps.Record.Lookup(t.Context(), schema.At("r", 1, "timings_step"))
	require.NoError(t, err)
	require.True(t, found)
	rows := rowsAt[schema.TimingRow](b, ref)
	require.Len(t, rows, 2)
	require.Nil(t, rows[0].Adopted)
	require.Equal(t, true, *rows[1].Adopted)
}

// firstTurn generates the first turn of the first shard and runs its calls.
func firstTurn(t *testing.T, b *stepBench) (api.Generated, api.ToolsDone) {
	t.Helper()
	first, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, api.GenerateInput{Scope: b.scope,
		Prompts: b.prompts, Policy: b.policy})
	require.NoError(t, err)
	tools, err := do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, api.ToolsInput{Scope: b.scope,
		Prompts: b.prompts, Past: api.Past{Last: first.Manifest}})
	require.NoError(t, err)
	return first, tools
}

// The measured times of activities and calls name their traces: an activity's row its own span, and a call's row that
// of the execution that committed its result. Without a tracer the columns are null.
func TestMeasuredTimesNameTheirTraces(t *testing.T) {
	b, _ := callingBench(t, &printer{})
	c := tracetest.New(t)
	b.deps.Tracer = c.Tracer(t)
	first, tools := firstTurn(t, b)
	require.NoError(t, b.deps.Tracer.Close())
	b.deps.Tracer = nil
	untraced, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, api.GenerateInput{Scope: b.scope,
		Prompts: b.prompts, Policy: b.policy})
	require.NoError(t, err)
	_, err = do(b, upkeep.RecordTimings{Worker: b.deps}.Execute, api.RecordTimingsInput{Scope: b.scope, Part: "step",
		Timings: []api.Timing{first.Timing, tools.Timing, untraced.Timing}})
	require.NoError(t, err)

	spans := map[string]tracetest.Span{}
	for _, s := range c.Spans(t) {
		spans[s.Name] = s
	}
	var rows []schema.TimingRow
	for _, place := range []schema.Place{schema.At("r", 1, stage.TimingsStep),
		schema.At("r", 1, stage.TimingsCalls).WithTurn(0).WithShard(0)} {
		_, ref, found, err := b.deps.Record.Lookup(t.Context(), place)
		require.NoError(t, err)
		require.True(t, found)
		rows = append(rows, rowsAt[schema.TimingRow](b, ref)...)
	}
	kinds := map[string]int{}
	for _, row := range rows {
		kinds[row.Kind]++
		if row.Adopted != nil { // by the worker without a tracer
			require.Nil(t, row.TraceID)
			require.Nil(t, row.SpanID)
			continue
		}
		require.Equal(t, spans[row.Stage].TraceID, *row.TraceID, row.Kind)
		require.Equal(t, spans[row.Stage].SpanID, *row.SpanID, row.Kind)
	}
	require.Equal(t, map[string]int{"activity": 3, "tool_call": first.Calls - tools.Excluded}, kinds,
		"a call that broke took no time")
}

// A timings manifest names earlier ones: a step's names those of its calls or shards and that of the previous step. So
// verify detects one that was exchanged, although no head names any of them.
func TestMeasuredTimesNameTheEarlierOnes(t *testing.T) {
	b, _ := callingBench(t, &printer{})
	first, tools := firstTurn(t, b)
	rolledOut := []api.Timing{first.Timing, tools.Timing}
	scored := api.Timing{Stage: schema.StageReward, Turn: -1}
	other := api.Timing{Stage: schema.StagePublish, Shard: -1, Turn: -1}
	record := func(step int, part string, shard *int, timings ...api.Timing) {
		t.Helper()
		in := api.RecordTimingsInput{Scope: b.scope, Part: part, Shard: shard, Timings: timings}
		in.Step = step
		_, err := do(b, upkeep.RecordTimings{Worker: b.deps}.Execute, in)
		require.NoError(t, err)
	}
	ofRun, ofStep, ofCalls := schema.AtInit("r", "timings_run"), schema.At("r", 1, "timings_step"),
		schema.At("r", 1, "timings_calls").WithTurn(0).WithShard(0)
	record(api.InitStep, "run", nil, other)
	require.Empty(t, b.named(ofRun))

	record(1, "step", nil, append(rolledOut, scored)...)
	require.Equal(t, []schema.Ref{b.there(ofRun), b.there(ofCalls)}, b.named(ofStep))
	record(1, "run", nil, other)
	require.Equal(t, []schema.Ref{b.there(ofStep)}, b.named(schema.At("r", 1, "timings_run")))
	record(2, "step", nil, other)
	require.Equal(t, []schema.Ref{b.there(ofStep), b.there(schema.At("r", 1, "timings_run"))},
		b.named(schema.At("r", 2, "timings_step")))
	record(4, "step", nil, other)
	require.Empty(t, b.named(schema.At("r", 4, "timings_step")), "those of step 3 are not committed")
}

// If shards record their own times, their timings name those of the calls, and the step's timings name those of the
// shards, in the generation that the step's head names.
func TestMeasuredTimesNameThoseOfShards(t *testing.T) {
	b, _ := callingBench(t, &printer{})
	b.scope.Gen = 1
	first, tools := firstTurn(t, b)
	in := api.RecordTimingsInput{Scope: b.scope, Part: "step", Shard: new(int),
		Timings: []api.Timing{first.Timing, tools.Timing}}
	_, err := do(b, upkeep.RecordTimings{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	at := schema.At("r", 1, "timings_step").WithShard(0).WithGen(1)
	require.Equal(t, []schema.Ref{b.there(schema.At("r", 1, "timings_calls").WithTurn(0).WithShard(0).WithGen(1))},
		b.named(at))

	scored := schema.NewManifest(schema.At("r", 1, schema.StageReward).WithGen(1), b.deps.Code, b.deps.Code)
	scored.Inputs = []schema.Ref{b.scope.Config}
	_, ref, _, err := b.deps.Record.Commit(t.Context(), scored)
	require.NoError(t, err)
	head, err := schema.NewHead("r", "1", ref)
	require.NoError(t, err)
	_, _, _, err = b.deps.Record.CommitHead(t.Context(), head)
	require.NoError(t, err)
	in.Shard, in.Gen, in.Timings = nil, 0, []api.Timing{{Stage: schema.StageReward, Turn: -1}}
	_, err = do(b, upkeep.RecordTimings{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, []schema.Ref{b.there(at)}, b.named(schema.At("r", 1, "timings_step")))
}

// there returns the ref of the manifest at a place.
func (b *stepBench) there(place schema.Place) schema.Ref {
	b.t.Helper()
	_, ref, found, err := b.deps.Record.Lookup(b.t.Context(), place)
	require.NoError(b.t, err)
	require.True(b.t, found, place)
	return ref
}

// named returns the inputs of a place's manifest except the recipe.
func (b *stepBench) named(place schema.Place) []schema.Ref {
	b.t.Helper()
	m, err := b.deps.Record.Read(b.t.Context(), b.there(place))
	require.NoError(b.t, err)
	require.Equal(b.t, b.scope.Config, m.Inputs[0])
	return m.Inputs[1:]
}
