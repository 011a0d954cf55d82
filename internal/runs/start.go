package runs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// Start describes what a command starts: one workflow under one recipe.
type Start struct {
	Request schema.Request
	Input   any
	Summary string
	Fresh   bool // the run's name was drawn at random, so no run may have it yet
	// Priority orders the run's tasks among those of other runs in a queue; zero leaves it to the server.
	Priority temporal.Priority
}

// NewID makes a run's name from what it is, the time and random letters, so that two runs that start in the same second
// get different names.
func NewID(what string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%s", what, now.UTC().Format("20060102-150405"), strings.ToLower(rand.Text()[:6]))
}

// NewStart describes a workflow before it starts; file is the digest of an imported file.
func NewStart(
	run, workflow, summary string, r *recipes.Resolved, file string, input any, now time.Time,
) (Start, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return Start{}, fmt.Errorf("encode the input of run %s: %w", run, err)
	}
	entry := schema.CatalogueEntry{
		Run: run, Recipe: r.Recipe.Name, Seed: r.Recipe.Seed, Steps: r.Recipe.Steps,
		Created: now.UTC().Format(time.RFC3339),
	}
	return Start{
		Request: schema.Request{CatalogueEntry: entry, Workflow: workflow, Digest: r.Digest, File: file, Input: text},
		Input:   input, Summary: summary,
	}, nil
}

// starter is the part of Temporal's client that starting a run needs.
type starter interface {
	ExecuteWorkflow(
		ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any,
	) (client.WorkflowRun, error)
	DescribeWorkflowExecution(
		ctx context.Context, run, execution string,
	) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	GetWorkflowHistory(
		ctx context.Context, run, execution string, long bool, filter enumspb.HistoryEventFilterType,
	) client.HistoryEventIterator
}

// Begun says what a run's name stood for before Begin.
type Begun struct {
	Joined   bool // the run was already open
	Imported bool // the file's import was already committed
}

// mostStarts bounds the attempts to start a run while other commands start it too.
const mostStarts = 8

// Begin starts a run's workflow, or joins the open one if it has the same recipe and file. It is repeated while a
// server is away or slow.
func (s *Session) Begin(ctx context.Context, ask Start) (b Begun, err error) {
	asked := map[string]string{"workflow": ask.Request.Workflow, "recipe": ask.Request.Recipe,
		"digest": ask.Request.Digest}
	if err := s.Note(ctx, ask.Request.Run, "start", asked); err != nil {
		return b, err
	}
	err = s.retryTransient(ctx, func(ctx context.Context) (err error) {
		b, err = begin(ctx, s.Temporal, s.Store, ask)
		ask.Fresh = false // a start whose answer was lost may have begun the run
		return err
	})
	return b, err
}

// begin starts or joins a run once. A start that does not match what the run's name stands for is refused before
// anything starts, so that no failed workflow hides the existing run.
func begin(ctx context.Context, server starter, objects store.Store, a Start) (Begun, error) {
	for range mostStarts {
		prepared, imported, err := a.fitsRecord(ctx, objects)
		if err != nil {
			return Begun{}, err
		}
		last, err := LastOf(ctx, server, a.Request.Run)
		if err != nil {
			return Begun{}, err
		}
		if a.Fresh && (prepared || last.exists) {
			return Begun{}, fmt.Errorf("start run %s: its random name is taken; try again", a.Request.Run)
		}
		if last.Open {
			return Begun{Joined: true, Imported: imported}, a.fitsOpen(ctx, server, last)
		}
		if !prepared {
			if err := a.put(ctx, objects); err != nil {
				return Begun{}, err
			}
		}
		err = a.start(ctx, server, last)
		var ahead *serviceerror.WorkflowExecutionAlreadyStarted
		if !errors.As(err, &ahead) {
			return Begun{Imported: imported}, err
		}
	}
	return Begun{}, fmt.Errorf("start run %s: other commands started it first %d times; try again", a.Request.Run,
		mostStarts)
}

// differs says what a prepared run and the requested one differ in.
func (a Start) differs(prepared schema.Manifest) string {
	recipe, seed := fmt.Sprint(prepared.Note["recipe"]), fmt.Sprint(prepared.Note["seed"])
	switch {
	case recipe != a.Request.Recipe:
		return fmt.Sprintf("by recipe %s, and this is %s", recipe, a.Request.Recipe)
	case seed != strconv.FormatUint(a.Request.Seed, 10):
		return fmt.Sprintf("with seed %s, and this is %d", seed, a.Request.Seed)
	}
	return fmt.Sprintf("by recipe %s and seed %s with other settings", recipe, seed)
}

// fitsRecord refuses a run that is prepared under another recipe, or holds another file's import.
func (a Start) fitsRecord(ctx context.Context, objects store.Store) (prepared, imported bool, err error) {
	run, record := a.Request.Run, commit.New(objects)
	m, _, prepared, err := record.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil || !prepared {
		return false, false, err
	}
	if m.Config != a.Request.Digest {
		return false, false, badinput.Errorf("--run-id: run %s was made by another recipe or seed: %s; choose another "+
			"run id, or continue that run: ropewalk resume %s", run, a.differs(m), run)
	}
	if a.Request.File == "" || a.Request.Workflow == workflows.EvaluateRunName { // PrepareRun compares the policies
		return true, false, nil
	}
	m, _, imported, err = record.Lookup(ctx, schema.At(run, importStep, schema.StageImport))
	if err != nil || !imported {
		return true, false, err
	}
	if there := m.Note[schema.NoteSourceDigest]; there != a.Request.File {
		return true, false, badinput.Errorf("--run-id: run %s holds the import of another file (SHA-256 %s, this "+
			"one's is %s); "+
			"choose another run id", run, there, a.Request.File)
	}
	return true, true, nil
}

// importStep is the one step of an import.
const importStep = 1

// put writes the request, which stays from before the workflow starts until the run is prepared.
func (a Start) put(ctx context.Context, objects store.Store) error {
	text, err := schema.Canonical(a.Request)
	if err != nil {
		return err
	}
	err = objects.PutIfAbsent(ctx, schema.RequestKey(a.Request.Run), text)
	if err == nil {
		return nil
	}
	if !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("write the request for run %s: %w", a.Request.Run, err)
	}
	already, found, err := analysis.New(objects).Request(ctx, a.Request.Run)
	if err != nil || !found { // it was prepared in the meantime; the start, or the next look at the record, finds out
		return err
	}
	if already.Digest != a.Request.Digest || already.File != a.Request.File {
		return badinput.Errorf("--run-id: run %s is already queued under another recipe, seed or file (recipe %s, "+
			"seed %d); "+
			"choose another run id, or ropewalk resume %s, or ropewalk cancel %s", a.Request.Run, already.Recipe,
			already.Seed, a.Request.Run, a.Request.Run)
	}
	return nil
}

// start starts the workflow. A completed workflow is started again only if the record holds the same run: it then
// adopts everything that is committed.
func (a Start) start(ctx context.Context, server starter, last Execution) error {
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	if last.completed {
		reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	_, err := server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: a.Request.Run, TaskQueue: workflows.QueueCPU, StaticSummary: a.Summary, Priority: a.Priority,
		WorkflowIDReusePolicy:                    reuse,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, a.Request.Workflow, a.Input)
	if err != nil {
		return fmt.Errorf("start run %s: %w", a.Request.Run, err)
	}
	return nil
}

// DropRefused removes the request for a run whose workflow refused its input, since there is nothing to resume.
func (s *Session) DropRefused(ctx context.Context, run string, err error) error {
	var bad badinput.Error
	if !errors.As(err, &bad) {
		return err
	}
	if dropped := s.Store.Delete(ctx, schema.RequestKey(run)); dropped != nil {
		return errors.Join(err, fmt.Errorf("remove the request for run %s: %w", run, dropped))
	}
	return err
}
