package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
)

// Gather reads what the report of a run shows. With a reader of analysis.AllGenerations the figures are drawn from what
// the heads name, and a section of replays is added. figuresOnly leaves out the samples of trajectories, so that their
// texts and tokens are not read.
func Gather(ctx context.Context, record *analysis.Record, name string, figuresOnly bool) (*Page, error) {
	replays := record.Generation() == analysis.AllGenerations
	if replays {
		record = record.WithGeneration(analysis.Heads)
	}
	run, err := record.Run(ctx, name)
	if err != nil {
		return nil, err
	}
	d := data{run: run, replays: replays, questions: map[string]Question{}, answers: map[string]answer{}}
	if err := d.ask(ctx, record, needs(sections)); err != nil {
		return nil, err
	}
	if err := d.read(ctx, record); err != nil {
		return nil, err
	}
	page := &Page{Run: run, Generation: record.Generation(), Tiles: tiles(d)}
	var all []Section
	for _, s := range sections {
		if s.shown != nil {
			if !s.shown(d) {
				continue
			}
			asked := record
			if s.allGenerations {
				asked = record.WithGeneration(analysis.AllGenerations)
			}
			if err := d.ask(ctx, asked, s.needs()); err != nil {
				return nil, err
			}
		}
		all = append(all, s.render(d))
	}
	page.LeftOut = leftOut(all)
	page.Sections = slices.DeleteFunc(all, func(s Section) bool { return len(s.Figures) == 0 })
	if figuresOnly {
		return page, nil
	}
	page.Samples, page.shown, err = samples(ctx, record, name)
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
	if d.offered, err = record.Properties(ctx, d.run.Run); err != nil {
		return err
	}
	if d.cold, err = record.ColdStart(ctx, d.run.Run); err != nil {
		return err
	}
	d.rates, err = record.ErrorRates(ctx, d.run.Run)
	return err
}

// ask puts the questions with these names to one state of the record.
func (d data) ask(ctx context.Context, record *analysis.Record, names []string) (err error) {
	all := about(d.run.Run, names)
	session, err := sql.Open(ctx, record, []string{d.run.Run}, texts(all)...)
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
