package view

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/rescue"
)

// The index is filled from the newest step to the oldest. Steps are read several at once and put into the index one
// after the other; the page hears of them from time to time, since every time it asks for its rows again.
const (
	firstSteps = 8           // few, so that the page has something to show at once
	tellEvery  = time.Second // afterwards
	stepsAhead = 8           // read at once; their rows are in memory
)

// add adds steps to the index, the newest first. If one cannot be read, those before it are added.
func (v *Viewer) add(ctx context.Context, run analysis.Run, visible *analysis.Visible, missing []int) error {
	slices.Reverse(missing)
	next, stop := iter.Pull2(readSteps(ctx, visible, missing))
	defer stop()
	first := time.Now()
	for began := first; len(missing) > 0; began = time.Now() {
		enough := func(n int) bool { return time.Since(began) > tellEvery || began.Equal(first) && n == firstSteps }
		n, broken, err := v.fill(ctx, missing, next, enough)
		if err != nil || n == 0 {
			return errors.Join(err, broken)
		}
		contents, err := v.contents(ctx, partTraining)
		if err != nil {
			return err
		}
		v.change(func(s *State) {
			s.Run, s.Waiting, s.Contents, s.Problem = run, len(missing)-n, contents, ""
			s.Steps = slices.Sorted(slices.Values(append(slices.Clone(s.Steps), missing[:n]...)))
		})
		if broken != nil {
			return broken
		}
		missing = missing[n:]
	}
	return nil
}

// addEvaluations adds the episodes of the evaluations that the index lacks.
func (v *Viewer) addEvaluations(ctx context.Context, visible *analysis.Visible) error {
	steps, err := visible.Evaluated(ctx)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if slices.Contains(v.evaluated, step) {
			continue
		}
		rows, err := visible.Outcomes(ctx, step, true)
		if err != nil {
			return err
		}
		if err := v.index.Add(ctx, func(put func([]driver.Value) error) error {
			return putAll(put, step, true, rows)
		}); err != nil {
			return err
		}
		v.evaluated = append(v.evaluated, step)
		held, err := v.contents(ctx, partEvaluation)
		if err != nil {
			return err
		}
		v.change(func(s *State) { s.Held = held })
	}
	return nil
}

// fill puts the next n steps into the index, until there are enough or one cannot be read, which is broken. If the
// index fails, none of them are in it.
func (v *Viewer) fill(ctx context.Context, steps []int, next func() ([]analysis.Episode, error, bool),
	enough func(n int) bool) (n int, broken, err error) {
	err = v.index.Add(ctx, func(put func([]driver.Value) error) error {
		for n < len(steps) && (n == 0 || !enough(n)) {
			var rows []analysis.Episode
			if rows, broken, _ = next(); broken != nil {
				return nil
			}
			if err := putAll(put, steps[n], false, rows); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, broken, err
}

// readSteps reads the trajectories of steps, several steps at once, and yields them in the order of the steps. An error
// ends the sequence.
func readSteps(ctx context.Context, run *analysis.Visible, steps []int) iter.Seq2[[]analysis.Episode, error] {
	type read struct {
		rows []analysis.Episode
		err  error
	}
	return func(yield func([]analysis.Episode, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var readers sync.WaitGroup
		defer readers.Wait()
		defer cancel()
		results := make([]chan read, len(steps))
		start := func(i int) {
			results[i] = make(chan read, 1)
			readers.Go(func() {
				var r read
				r.err = rescue.Do(func() (err error) {
					r.rows, err = run.Outcomes(ctx, steps[i], false)
					return err
				})
				results[i] <- r
			})
		}
		for i := range min(stepsAhead, len(steps)) {
			start(i)
		}
		for i := range steps {
			r := <-results[i]
			results[i] = nil // its rows may go
			if i+stepsAhead < len(steps) {
				start(i + stepsAhead)
			}
			if !yield(r.rows, r.err) || r.err != nil {
				return
			}
		}
	}
}

// putAll puts the trajectories of a step, or the episodes of its evaluation, into the index.
func putAll(put func([]driver.Value) error, step int, held bool, rows []analysis.Episode) error {
	row := make([]driver.Value, len(columns))
	for i := range rows {
		e := entry{&rows[i], step, held}
		for i, c := range columns {
			row[i] = c.value(e)
		}
		if err := put(row); err != nil {
			return fmt.Errorf("put trajectory %s into the index: %w", e.trajectory(), err)
		}
	}
	return nil
}

// Facet is a value that trajectories have, and how many of them.
type Facet struct {
	Value any `json:"value"`
	Count int `json:"count"`
}

// contentsSQL counts the values that a reader can choose from: levels in their order, the others by their frequency
// after the one that means all went well. A trajectory has one fate, and a status once.
const contentsSQL = `with held as (select level, fate, statuses from ` + indexTable + ` where part = ?), counted as (
  select 'level' as facet, level, '' as value, count(*) as n from held where level is not null group by level
  union all select 'fate', null, fate, count(*) from held group by fate
  union all select 'status', null, status, count(*) from (
    select unnest(case when len(statuses) = 0 then ['` + NoCalls + `'] else list_distinct(statuses) end) as status
    from held
  ) group by status
)
select facet, level, value, n from counted order by facet, level, value not in ('` + keptFate + `', 'ok'), n desc, value`

// contents counts what the index holds of one of its parts.
func (v *Viewer) contents(ctx context.Context, part string) (Contents, error) {
	found, err := v.index.Ask(ctx, contentsSQL, part)
	out := emptyContents()
	for _, row := range found.Rows {
		n, _ := row[3].(int64)
		f, facet := Facet{row[2], int(n)}, fmt.Sprint(row[0])
		switch facet {
		case "level":
			f.Value = row[1]
		case "fate":
			out.Rows += f.Count
		}
		out.Facets[facet] = append(out.Facets[facet], f)
	}
	return out, err
}

func emptyContents() Contents {
	return Contents{Facets: map[string][]Facet{"level": {}, "fate": {}, "status": {}}}
}
