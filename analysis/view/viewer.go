package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/sql"
)

// Options say what is viewed.
type Options struct {
	Record *analysis.Record
	// Observe asks a Temporal server how the workflows of these runs are, of all runs if none is named; nil where there
	// is none to ask.
	Observe func(ctx context.Context, runs ...string) (analysis.Observed, error)
	// Workflow is the address of a run's workflow in Temporal's UI, "" if there is none; nil for none.
	Workflow func(run string) string
	// Every is the time between two looks for finished steps; 0 for 2 seconds.
	Every time.Duration
	// Messages gets a line for each problem while the record is followed.
	Messages io.Writer
}

// workflow is a run's address in Temporal's UI.
func (o Options) workflow(run string) string {
	if o.Workflow == nil {
		return ""
	}
	return o.Workflow(run)
}

// Viewer reads one run for its page. It is safe for concurrent use.
type Viewer struct {
	options   Options
	name      string // of the run
	record    *analysis.Record
	index     *sql.Index
	evaluated []int // the steps whose evaluations the index holds; one goroutine follows

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed at the next change of the state
	visible *analysis.Visible

	observed  analysis.Observed
	observing time.Time // when the server was asked last

	closeups closeups
	figures  figures
}

// State says how much of the run the index holds. It is never changed, but replaced.
type State struct {
	Version int          `json:"version"` // grows with every change
	Run     analysis.Run `json:"run"`
	Steps   []int        `json:"steps"`   // in the index, in their order
	Waiting int          `json:"waiting"` // finished steps that the index lacks yet
	Contents
	Held     Contents `json:"held"`              // the episodes of evaluations
	Problem  string   `json:"problem,omitempty"` // why the record cannot be followed at the moment
	Gap      string   `json:"gap,omitempty"`     // which heads are missing
	Complete bool     `json:"complete"`          // the index holds every finished step
	Workflow string   `json:"workflow"`          // the run's address in Temporal's UI; "" if there is none
}

// Contents counts what the index holds of steps, or of evaluations.
type Contents struct {
	Rows   int                `json:"rows"`
	Facets map[string][]Facet `json:"facets"`
}

// of returns the contents of one part of the index.
func (s State) of(held bool) Contents {
	if held {
		return s.Held
	}
	return s.Contents
}

// open opens a viewer of a run that exists. Its index is empty until Follow fills it.
func open(ctx context.Context, o Options, name string) (*Viewer, error) {
	o.Every, o.Messages = cmp.Or(o.Every, 2*time.Second), cmp.Or(o.Messages, io.Discard)
	v := &Viewer{options: o, name: name, changed: make(chan struct{})}
	v.record = o.Record.WithGaps(v.warn)
	run, err := v.run(ctx)
	if err != nil {
		return nil, err
	}
	v.state = State{Run: run, Steps: []int{}, Contents: emptyContents(), Held: emptyContents(),
		Waiting: run.StepsDone, Workflow: o.workflow(name)}
	v.figures.gather = func(ctx context.Context) (*report.Page, error) {
		return report.Gather(ctx, o.Record.WithServer(v.lastObserved()), name, true)
	}
	if v.index, err = sql.OpenIndex(ctx, indexTable, tableColumns()); err != nil {
		return nil, err
	}
	return v, nil
}

// warn lets a run with missing heads be read, and says so.
func (v *Viewer) warn(gap *analysis.GapError) error {
	if v.State().Gap != gap.Error() {
		fmt.Fprintf(v.options.Messages, "warning: %v\n", gap)
		v.change(func(s *State) { s.Gap = gap.Error() })
	}
	return nil
}

// State returns the present state.
func (v *Viewer) State() State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state
}

// Changed returns the present state and a channel that is closed when it changes.
func (v *Viewer) Changed() (State, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.changed
}

// change replaces the state and wakes who waits for that.
func (v *Viewer) change(f func(*State)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f(&v.state)
	v.state.Version++
	close(v.changed)
	v.changed = make(chan struct{})
}

// Follow fills the index with the finished steps, the newest first, and then looks for new ones until the context ends.
// What cannot be read at the moment is told in the state and tried again.
func (v *Viewer) Follow(ctx context.Context) {
	for {
		if err := v.look(ctx); err != nil && ctx.Err() == nil {
			v.fail(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(v.options.Every):
		}
	}
}

// fail tells a problem, once while it lasts.
func (v *Viewer) fail(err error) {
	if v.State().Problem == err.Error() {
		return
	}
	fmt.Fprintf(v.options.Messages, "%v\n", err)
	v.change(func(s *State) { s.Problem = err.Error() })
}

// look reads what is new in the record.
func (v *Viewer) look(ctx context.Context) error {
	run, err := v.run(ctx)
	if err != nil {
		return err
	}
	before := v.State()
	if before.Complete && sameProgress(run, before.Run) {
		return nil
	}
	visible, err := v.record.Visible(ctx, v.name)
	if errors.Is(err, analysis.ErrNoRun) { // it is in the catalogue and has committed nothing yet
		v.change(func(s *State) { s.Run, s.Complete, s.Waiting = run, true, 0 })
		return nil
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.visible = visible
	v.mu.Unlock()
	missing := slices.DeleteFunc(visible.Steps(), func(s int) bool { return slices.Contains(before.Steps, s) })
	if err := v.add(ctx, run, visible, missing); err != nil {
		return err
	}
	if err := v.addEvaluations(ctx, visible); err != nil {
		return err
	}
	v.change(func(s *State) {
		s.Run, s.Complete, s.Waiting, s.Problem, s.Workflow = run, true, 0, "", v.options.workflow(v.name)
	})
	return nil
}

// sameProgress reports whether two readings of a run's entry say the same.
func sameProgress(a, b analysis.Run) bool {
	return a.StepsDone == b.StepsDone && a.Planned == b.Planned && a.State() == b.State() &&
		(a.After == nil) == (b.After == nil) && (a.Before == nil) == (b.Before == nil)
}

// observeEvery is the time between two questions to the Temporal server, each of which opens a connection.
const observeEvery = 6 * time.Second

// run reads the run's entry, with the status that follows from the record and from the Temporal server.
func (v *Viewer) run(ctx context.Context) (analysis.Run, error) {
	if v.options.Observe != nil && time.Since(v.observing) > observeEvery { // one goroutine follows
		v.observing = time.Now()
		observed, err := v.options.Observe(ctx, v.name)
		if err != nil {
			return analysis.Run{}, err
		}
		v.mu.Lock()
		v.observed = observed
		v.mu.Unlock()
	}
	return v.record.WithServer(v.lastObserved()).Run(ctx, v.name)
}

func (v *Viewer) lastObserved() analysis.Observed {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.observed
}

// close closes the index.
func (v *Viewer) close() error { return v.index.Close() }
