package analysis

import (
	"cmp"
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/schema"
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
	made, _, err := r.changes(ctx, entry.Run)
	if err != nil || len(made) == 0 {
		return entry.Steps, err
	}
	var id identity
	err = r.recipe(ctx, made[len(made)-1], &id)
	return id.Steps, err
}

// changes reads a run's changes of its recipe, in the order of their numbers, without those that change nothing.
func (r *Record) changes(ctx context.Context, run string) (made []schema.Manifest, refs []schema.Ref, err error) {
	places, err := r.places(ctx, schema.ManifestsPrefix(run)+"step="+schema.InitStep+"/"+schema.StageAmend+"/")
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(places, func(a, b schema.Place) int { return cmp.Compare(a.Try, b.Try) })
	all, named, err := r.lookups(ctx, places)
	for i, m := range all {
		if m.Note[schema.NoteVoid] == "" {
			made, refs = append(made, m), append(refs, named[i])
		}
	}
	return made, refs, err
}

// stateNote reads the latest note of a run's state; nil if there is none.
func (r *Record) stateNote(ctx context.Context, run string) (*schema.StateNote, error) {
	prefix := schema.StatesPrefix + run + "/"
	names, err := r.names(ctx, prefix)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	n, found, err := readJSON[schema.StateNote](ctx, r, prefix+names[len(names)-1]+".json")
	if err != nil || !found { // a person has removed it meanwhile
		return nil, err
	}
	return &n, nil
}
