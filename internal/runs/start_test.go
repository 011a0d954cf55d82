package runs

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// fakeTemporal keeps the latest workflow of each id under Temporal's rules for ids.
type fakeTemporal struct {
	mu     sync.Mutex
	latest map[string]*fakeExecution
	starts int
	ahead  func() // another command, between this one's look and its start
}

type fakeExecution struct {
	workflow string
	status   enumspb.WorkflowExecutionStatus
	input    *commonpb.Payloads
	set      map[string]string // search attributes
}

func newFakeTemporal() *fakeTemporal { return &fakeTemporal{latest: map[string]*fakeExecution{}} }

func (f *fakeTemporal) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, workflow any,
	args ...any) (client.WorkflowRun, error) {
	if f.ahead != nil {
		ahead := f.ahead
		f.ahead = nil
		ahead()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := serviceerror.NewWorkflowExecutionAlreadyStarted("taken", "", "")
	if e := f.latest[o.ID]; e != nil {
		if e.status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return nil, taken
		}
		if e.status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED &&
			o.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE {
			return nil, taken
		}
	}
	input, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	if err != nil {
		return nil, err
	}
	f.starts++
	f.latest[o.ID] = &fakeExecution{workflow: workflow.(string), status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		input: input}
	return nil, nil
}

func (f *fakeTemporal) DescribeWorkflowExecution(_ context.Context, run,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.latest[run]
	if e == nil {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	attributes := &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{}}
	for name, value := range e.set {
		p, err := converter.GetDefaultDataConverter().ToPayload(value)
		if err != nil {
			return nil, err
		}
		attributes.IndexedFields[name] = p
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: run, RunId: "1"},
		Type:      &commonpb.WorkflowType{Name: e.workflow},
		Status:    e.status, SearchAttributes: attributes,
	}}, nil
}

// history is a workflow's first event.
type history struct{ input *commonpb.Payloads }

func (h *history) HasNext() bool { return h.input != nil }
func (h *history) Next() (*historypb.HistoryEvent, error) {
	input := h.input
	h.input = nil
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input},
	}}, nil
}

func (f *fakeTemporal) GetWorkflowHistory(_ context.Context, run, _ string, _ bool,
	_ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &history{f.latest[run].input}
}

func (f *fakeTemporal) ends(run string, status enumspb.WorkflowExecutionStatus) {
	f.latest[run].status = status
}

// training asks for a run of the quickstart under a seed.
func training(t *testing.T, run string, seed uint64) Start {
	t.Helper()
	r, err := recipes.Resolve("quickstart", "", nil, &seed, nil)
	require.NoError(t, err)
	a, err := NewStart(run, workflows.TrainRunName, "train", r, "",
		workflows.TrainRunInput{Run: run, Recipe: "quickstart", Seed: &seed}, time.Unix(0, 0))
	require.NoError(t, err)
	return a
}

// importing asks for the import of a file.
func importing(t *testing.T, run, file string) Start {
	t.Helper()
	r, err := recipes.Resolve("openai-offline", "", nil, nil, nil)
	require.NoError(t, err)
	digest := schema.Digest([]byte(file))
	in := workflows.ReprocessInput{Run: run, Recipe: "openai-offline", Format: api.FormatOpenAI, Source: "imports/" +
		digest + ".json", Digest: digest}
	a, err := NewStart(run, workflows.ReprocessRunName, "import openai", r, digest, in, time.Unix(0, 0))
	require.NoError(t, err)
	return a
}

// prepare commits what PrepareRun would.
func prepare(t *testing.T, objects store.Store, a Start) {
	t.Helper()
	m := schema.NewManifest(schema.AtInit(a.Request.Run, schema.StagePrepare), schema.Digest(nil), a.Request.Digest)
	m.Note = map[string]string{"recipe": a.Request.Recipe, "seed": "1"}
	_, _, _, err := commit.New(objects).Commit(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, objects.Delete(t.Context(), schema.RequestKey(a.Request.Run)))
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, want)
}

func TestAnOpenRunIsJoinedUnderItsOwnRecipeAlone(t *testing.T) {
	f, objects := newFakeTemporal(), mem.New()
	b, err := begin(t.Context(), f, objects, training(t, "x", 1))
	require.NoError(t, err)
	require.Equal(t, Begun{}, b)

	b, err = begin(t.Context(), f, objects, training(t, "x", 1))
	require.NoError(t, err)
	require.Equal(t, Begun{Joined: true}, b)
	_, err = begin(t.Context(), f, objects, training(t, "x", 2))
	refused(t, err, "--run-id: run x is open under another recipe or seed")
	_, err = begin(t.Context(), f, objects, importing(t, "x", "file"))
	refused(t, err, "run x is open as TrainRun, and this command starts ReprocessRun")
	require.Equal(t, 1, f.starts)
}

// Two commands that start at once: the one that comes second looks again.
func TestOfTwoStartsAtOnceTheSecondIsRefusedOrJoins(t *testing.T) {
	for seed, want := range map[uint64]string{1: "", 2: "another recipe"} {
		f, objects := newFakeTemporal(), mem.New()
		f.ahead = func() {
			_, err := begin(context.Background(), f, mem.New(), training(t, "x", 1))
			require.NoError(t, err)
		}
		b, err := begin(t.Context(), f, objects, training(t, "x", seed))
		require.Equal(t, 1, f.starts)
		if want == "" {
			require.NoError(t, err)
			require.True(t, b.Joined)
			continue
		}
		refused(t, err, want)
	}
}

// A refused command starts nothing, so that the completed workflow stays the latest of its id.
func TestARefusedRunLeavesTheCompletedOneAlone(t *testing.T) {
	f, objects := newFakeTemporal(), mem.New()
	first := training(t, "x", 1)
	_, err := begin(t.Context(), f, objects, first)
	require.NoError(t, err)
	prepare(t, objects, first)
	f.ends("x", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)

	_, err = begin(t.Context(), f, objects, training(t, "x", 2))
	refused(t, err, "run x was made by another recipe or seed")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, f.latest["x"].status)
	require.Equal(t, 1, f.starts)

	_, err = begin(t.Context(), f, objects, first) // it adopts what is committed
	require.NoError(t, err)
	require.Equal(t, 2, f.starts)
}

// A run that was completed after this command has looked is not hidden either.
func TestARunCompletedMeanwhileIsNotHidden(t *testing.T) {
	f, objects := newFakeTemporal(), mem.New()
	f.ahead = func() {
		other := training(t, "x", 1)
		_, err := begin(context.Background(), f, mem.New(), other)
		require.NoError(t, err)
		prepare(t, objects, other)
		f.ends("x", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	}
	_, err := begin(t.Context(), f, objects, training(t, "x", 2))
	refused(t, err, "run x was made by another recipe or seed")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, f.latest["x"].status)
}

func TestAnImportOfAnotherFileIsRefused(t *testing.T) {
	f, objects := newFakeTemporal(), mem.New()
	first := importing(t, "x", "one")
	_, err := begin(t.Context(), f, objects, first)
	require.NoError(t, err)
	_, err = begin(t.Context(), f, objects, importing(t, "x", "two"))
	refused(t, err, "run x is open with the import of another file")

	prepare(t, objects, first)
	m := schema.NewManifest(schema.At("x", 1, schema.StageImport), schema.Digest(nil), first.Request.Digest)
	m.Note = map[string]string{schema.NoteSourceDigest: first.Request.File}
	_, _, _, err = commit.New(objects).Commit(t.Context(), m)
	require.NoError(t, err)
	f.ends("x", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	_, err = begin(t.Context(), f, objects, importing(t, "x", "two"))
	refused(t, err, "run x holds the import of another file")
	b, err := begin(t.Context(), f, objects, importing(t, "x", "one"))
	require.NoError(t, err)
	require.True(t, b.Imported)
}

// From before the workflow starts until the recipe is committed, the record tells what was asked for.
func TestARequestTellsWhatARunThatNeverBeganWas(t *testing.T) {
	f, objects := newFakeTemporal(), mem.New()
	f.ahead = func() {
		runs, err := analysis.New(objects).Runs(context.Background())
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, []any{"x", "quickstart", string(status.Queued)},
			[]any{runs[0].Run, runs[0].Recipe, runs[0].Status})
	}
	ask := training(t, "x", 7)
	_, err := begin(t.Context(), f, objects, ask)
	require.NoError(t, err)
	f.ends("x", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)

	_, err = begin(t.Context(), f, objects, training(t, "x", 8))
	refused(t, err, "run x is already queued under another recipe, seed or file (recipe quickstart, seed 7)")
	q, found, err := analysis.New(objects).Request(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, found)
	var in workflows.TrainRunInput
	require.NoError(t, json.Unmarshal(q.Input, &in))
	require.Equal(t, uint64(7), *in.Seed)
	_, err = begin(t.Context(), f, objects, Start{Request: q, Input: q.Input}) // as resume does
	require.NoError(t, err)
	require.Equal(t, 2, f.starts)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(f.latest["x"].input, &in))
	require.Equal(t, "quickstart", in.Recipe)
	prepare(t, objects, ask)
	_, found, err = analysis.New(objects).Request(t.Context(), "x")
	require.NoError(t, err)
	require.False(t, found)
}

func TestADrawnNameBelongsToOneRun(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := NewID("quickstart-s1", time.Unix(0, 0))
		require.NoError(t, schema.CheckRunID(id))
		require.True(t, strings.HasPrefix(id, "quickstart-s1-19700101-000000-"), id)
		seen[id] = true
	}
	require.Greater(t, len(seen), 9_900)
	f, objects := newFakeTemporal(), mem.New()
	ask := training(t, "x", 1)
	ask.Fresh = true
	_, err := begin(t.Context(), f, objects, ask)
	require.NoError(t, err)
	_, err = begin(t.Context(), f, objects, ask)
	require.ErrorContains(t, err, "its random name is taken")
}

func TestParkedAndPausedRunsWait(t *testing.T) {
	f := newFakeTemporal()
	for _, c := range []struct {
		set   map[string]string
		waits bool
	}{
		{nil, false},
		{map[string]string{"Stage": "rollout"}, false},
		{map[string]string{"FailureKind": "disk_full"}, true},
		{map[string]string{"Stage": workflows.StagePaused}, true},
	} {
		f.latest["x"] = &fakeExecution{workflow: workflows.TrainRunName,
			status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, set: c.set}
		last, err := LastOf(t.Context(), f, "x")
		require.NoError(t, err)
		require.Equal(t, c.waits, last.Waits, "%v", c.set)
	}
}
