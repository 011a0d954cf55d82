package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/cache"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/store"
)

// Options select the run and the generation of a report.
type Options struct {
	Store store.Store
	Cache string // folder; see package cache
	Run   string
	Gen   analysis.Generation
	// FiguresOnly leaves out the samples of trajectories, whose texts and tokens are then not read.
	FiguresOnly bool
	// Server is what is known from a Temporal server, for the run's status.
	Server analysis.Observed
}

// replays reports whether the page compares replays with what the heads name.
func (o Options) replays() bool { return o.Gen == analysis.AllGenerations }

// Gather reads what the report of a run shows. With analysis.AllGenerations the figures are drawn
// from what the heads name, and a section of replays is added.
func Gather(ctx context.Context, o Options) (*Page, error) {
	files, err := cache.Open(o.Cache)
	if err != nil {
		return nil, err
	}
	gen := o.Gen
	if o.replays() {
		gen = analysis.Heads
	}
	record := analysis.New(o.Store).WithCache(files).WithGeneration(gen).WithServer(o.Server)
	run, err := record.Run(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	d := data{run: run, questions: map[string]Question{}, answers: map[string]answer{}}
	if err := d.ask(ctx, o, gen, needs(sections)); err != nil {
		return nil, err
	}
	if err := d.read(ctx, record); err != nil {
		return nil, err
	}
	page := &Page{Run: run, Generation: gen, Tiles: tiles(d)}
	var all []Section
	for _, s := range sections {
		if s.shown != nil {
			if !s.shown(d, o) {
				continue
			}
			asked := gen
			if s.allGenerations {
				asked = analysis.AllGenerations
			}
			if err := d.ask(ctx, o, asked, s.needs()); err != nil {
				return nil, err
			}
		}
		all = append(all, s.render(d))
	}
	page.LeftOut = leftOut(all)
	page.Sections = slices.DeleteFunc(all, func(s Section) bool { return len(s.Figures) == 0 })
	if o.FiguresOnly {
		return page, nil
	}
	page.Samples, page.shown, err = samples(ctx, record, o.Run)
	return page, err
}

// read reads what no question gives: tokens of a few steps, and what the run was made from and measured. A run that is
// in the catalogue and has committed nothing has none of it.
func (d *data) read(ctx context.Context, record *analysis.Record) error {
	v, err := record.Visible(ctx, d.run.Run)
	if errors.Is(err, analysis.ErrNoRun) {
		return nil
	}
	if err != nil {
		return err
	}
	origin, err := v.Origin(ctx)
	if err != nil {
		return err
	}
	d.origin = &origin
	if d.tokens, err = readTokens(ctx, v); err != nil {
		return err
	}
	offered, found, err := record.Properties(ctx, d.run.Run)
	if err != nil {
		return err
	}
	if found {
		d.offered = &offered
	}
	cold, found, err := record.ColdStart(ctx, d.run.Run)
	if err != nil {
		return err
	}
	if found {
		d.cold = &cold
	}
	d.rates, err = record.ErrorRates(ctx, d.run.Run)
	return err
}

// ask puts the questions with these names to one state of the record.
func (d data) ask(ctx context.Context, o Options, gen analysis.Generation, names []string) (err error) {
	all := about(o.Run, names)
	session, err := sql.Open(ctx, sql.Options{Store: o.Store, Cache: o.Cache, Runs: []string{o.Run}, Gen: gen},
		texts(all)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	for _, q := range all {
		result, err := session.Ask(ctx, q.SQL)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", q.Name, err)
		}
		d.questions[q.Name], d.answers[q.Name] = q, answer{result}
	}
	return nil
}
