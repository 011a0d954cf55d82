package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Observed is what a reader knows from a Temporal server about the runs of the record. Its zero value knows nothing.
type Observed struct {
	Server    status.Server
	Workflows map[string]status.Workflow // the latest under each run's name
}

// WithServer returns a reader whose runs have the status that follows from the record and from a server.
func (r *Record) WithServer(o Observed) *Record {
	with := *r
	with.observed = o
	return &with
}

// facts adds to what the record says about a run what the server has said.
func (r *Record) facts(run Run, f status.Facts) status.Facts {
	f.Asked, f.Planned, f.Server = run.Steps, run.Planned, r.observed.Server
	if w, known := r.observed.Workflows[run.Run]; known {
		f.Workflow = &w
	}
	return f
}

// planned returns how many steps a run takes: those of its recipe, or of the latest change by `stop` or `set`.
func (r *Record) planned(ctx context.Context, entry schema.CatalogueEntry) (int, error) {
	if entry.Steps == 0 {
		return 0, nil
	}
	changes, err := r.changes(ctx, entry.Run)
	if err != nil {
		return 0, err
	}
	for _, place := range slices.Backward(changes) {
		m, _, found, err := r.writer.Lookup(ctx, place)
		if err != nil || !found {
			return 0, cmp.Or(err, errors.New("a change of the recipe has disappeared"))
		}
		if m.Note[schema.NoteVoid] != "" { // it changes nothing
			continue
		}
		var id identity
		err = r.document(ctx, m, &id)
		return id.Steps, err
	}
	return entry.Steps, nil
}

// changes are the places of a run's changes of its recipe, in the order of their numbers.
func (r *Record) changes(ctx context.Context, run string) ([]schema.Place, error) {
	prefix := schema.ManifestsPrefix(run) + "step=" + schema.InitStep + "/" + schema.StageAmend + "/"
	listed, err := r.objects.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the changes of run %s's recipe: %w", run, err)
	}
	var places []schema.Place
	for _, o := range listed {
		p, err := schema.ParseManifestKey(o.Key)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b schema.Place) int { return cmp.Compare(a.Try, b.Try) })
	return places, nil
}

// stateNote reads the latest note of a run's state; nil if there is none.
func (r *Record) stateNote(ctx context.Context, run string) (*schema.StateNote, error) {
	listed, err := r.objects.List(ctx, schema.StatesPrefix+run+"/")
	if err != nil {
		return nil, fmt.Errorf("list the notes of run %s's state: %w", run, err)
	}
	if len(listed) == 0 {
		return nil, nil
	}
	key := listed[len(listed)-1].Key
	data, err := r.objects.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // a person has removed it meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of run %s: %w", run, err)
	}
	var n schema.StateNote
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, key, err)
	}
	return &n, nil
}
