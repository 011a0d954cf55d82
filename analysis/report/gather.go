package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/cache"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/store"
)

// Options say of what the report is made.
type Options struct {
	Store store.Store
	Cache string // folder; see package cache
	Run   string
	Gen   analysis.Generation
}

// Gather reads what the report of a run shows. With analysis.AllGenerations the figures are drawn
// from what the heads name, and replays are set beside it.
func Gather(ctx context.Context, o Options) (*Page, error) {
	files, err := cache.Open(o.Cache)
	if err != nil {
		return nil, err
	}
	gen := o.Gen
	if gen == analysis.AllGenerations {
		gen = analysis.Heads
	}
	record := analysis.New(o.Store).WithCache(files).WithGeneration(gen)
	run, err := record.Run(ctx, o.Run)
	if err != nil {
		return nil, err
	}
	d := data{run: run, questions: map[string]Question{}, answers: map[string]answer{}}
	if err := d.ask(ctx, o, gen, questions(o.Run)); err != nil {
		return nil, err
	}
	if d.tokens, err = readTokens(ctx, record, o.Run); err != nil {
		return nil, err
	}
	page := &Page{Run: run, Generation: gen, Tiles: d.tiles(), Sections: d.sections()}
	if d.answers["conversations"].number(0, "n") > 0 {
		if err := d.ask(ctx, o, gen, taskQuestions(o.Run)); err != nil {
			return nil, err
		}
		page.Sections = append(page.Sections, d.tasks())
	}
	if o.Gen == analysis.AllGenerations {
		if err := d.ask(ctx, o, o.Gen, replayQuestions(o.Run)); err != nil {
			return nil, err
		}
		page.Sections = append(page.Sections, d.replays())
	}
	page.Samples, page.shown, err = samples(ctx, record, o.Run)
	return page, err
}

// ask puts the questions to one state of the record.
func (d data) ask(ctx context.Context, o Options, gen analysis.Generation, all []Question) (err error) {
	session, err := sql.Open(ctx, sql.Options{Store: o.Store, Cache: o.Cache, Runs: []string{o.Run}, Gen: gen}, texts(all)...)
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
