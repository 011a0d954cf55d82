package view

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
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
		found, n, broken, err := v.fill(ctx, missing, next, enough)
		if err != nil || n == 0 {
			return errors.Join(err, broken)
		}
		v.tally.add(found)
		v.change(func(s *State) {
			s.Run, s.Waiting, s.Contents, s.Problem = run, len(missing)-n, v.tally.contents(), ""
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
		rows, err := visible.EvaluationOutcomes(ctx, step)
		if err != nil {
			return err
		}
		found := newTally()
		if err := v.index.Add(ctx, func(put func([]driver.Value) error) error {
			return found.putAll(put, step, true, rows)
		}); err != nil {
			return err
		}
		v.evaluated = append(v.evaluated, step)
		v.held.add(found)
		v.change(func(s *State) { s.Held = v.held.contents() })
	}
	return nil
}

// fill puts the next n steps into the index, until there are enough or one cannot be read, which is broken. If the
// index fails, none of them are in it.
func (v *Viewer) fill(ctx context.Context, steps []int, next func() ([]analysis.Episode, error, bool),
	enough func(n int) bool) (found tally, n int, broken, err error) {
	found = newTally()
	err = v.index.Add(ctx, func(put func([]driver.Value) error) error {
		for n < len(steps) && (n == 0 || !enough(n)) {
			var rows []analysis.Episode
			if rows, broken, _ = next(); broken != nil {
				return nil
			}
			if err := found.putAll(put, steps[n], false, rows); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return found, n, broken, err
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
					r.rows, err = run.Outcomes(ctx, steps[i])
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

// Facet is a value that trajectories have, and how many of them.
type Facet struct {
	Value any `json:"value"`
	Count int `json:"count"`
}

// tally counts the trajectories of the index, and the values that a reader can choose from.
type tally struct {
	rows            int
	levels          map[int32]int
	fates, statuses map[string]int
}

func newTally() tally {
	return tally{levels: map[int32]int{}, fates: map[string]int{}, statuses: map[string]int{}}
}

// putAll puts the trajectories of a step, or the episodes of its evaluation, into the index, and counts them.
func (t *tally) putAll(put func([]driver.Value) error, step int, held bool, rows []analysis.Episode) error {
	row := make([]driver.Value, len(columns))
	for i := range rows {
		e := entry{&rows[i], step, held}
		e.values(row)
		if err := put(row); err != nil {
			return fmt.Errorf("put trajectory %s into the index: %w", e.trajectory(), err)
		}
		t.count(e)
	}
	return nil
}

func (t *tally) count(e entry) {
	t.rows++
	if e.sampled() != nil {
		t.levels[e.Trajectory.Level]++
	}
	t.fates[e.fate()]++
	if len(e.Calls) == 0 {
		t.statuses[NoCalls]++
	}
	for i, c := range e.Calls {
		if !slices.ContainsFunc(e.Calls[:i], func(o schema.ToolCallRow) bool { return o.Status == c.Status }) {
			t.statuses[c.Status]++
		}
	}
}

func (t *tally) add(other tally) {
	t.rows += other.rows
	addCounts(t.levels, other.levels)
	addCounts(t.fates, other.fates)
	addCounts(t.statuses, other.statuses)
}

func addCounts[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

// contents are the counts as the page reads them.
func (t *tally) contents() Contents { return Contents{Rows: t.rows, Facets: t.facets()} }

// facets are the values that a reader can choose from: levels in their order, the others by their frequency after the
// one that means all went well.
func (t *tally) facets() map[string][]Facet {
	return map[string][]Facet{
		"level": facetsOf(t.levels, cmp.Compare[int32]), "fate": facetsOf(t.fates, byFrequency(t.fates, keptFate)),
		"status": facetsOf(t.statuses, byFrequency(t.statuses, "ok")),
	}
}

// byFrequency orders one value before all others, and those by how many trajectories have them.
func byFrequency(counts map[string]int, first string) func(a, b string) int {
	return func(a, b string) int {
		switch first {
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}
}

func facetsOf[K comparable](counts map[K]int, order func(a, b K) int) []Facet {
	out := []Facet{}
	for _, value := range slices.SortedFunc(maps.Keys(counts), order) {
		out = append(out, Facet{value, counts[value]})
	}
	return out
}
