package analysis

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// GapError reports missing heads of finished steps. They were deleted, since a step is committed only after the step
// before it. Rows of those steps are not read, so every sum and mean over the run would leave them out.
type GapError struct {
	Run   string
	Steps []int // without a head, in their order
	Later int   // the step that proves that they were finished
}

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("run %s has a gap: %s missing, but step %d is done; restore %s from a copy of the bucket, or "+
		"`ropewalk resume %s` commits them again from the steps' manifests; `ropewalk verify %s` checks the rest",
		e.Run, e.words(), e.Later, schema.HeadKey(e.Run, fmt.Sprint(e.Steps[0])), e.Run, e.Run)
}

// words names the missing heads, a few of them by number.
func (e *GapError) words() string {
	const most = 8
	if len(e.Steps) == 1 {
		return fmt.Sprintf("the head of step %d is", e.Steps[0])
	}
	var names []string
	for _, s := range e.Steps[:min(most, len(e.Steps))] {
		names = append(names, fmt.Sprint(s))
	}
	text := "the heads of steps " + strings.Join(names, ", ")
	if more := len(e.Steps) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " are"
}

// Within reports whether a missing step lies between two steps, both included.
func (e *GapError) Within(first, last int) bool {
	for _, s := range e.Steps {
		if first <= s && s <= last {
			return true
		}
	}
	return false
}

// WithGaps returns a reader that calls decide for a gap in a run's steps. An error from decide ends the reading; with
// nil the reader goes on with the steps that have heads. A reader without decide returns the gap as an error, so that
// no sum silently leaves steps out.
func (r *Record) WithGaps(decide func(*GapError) error) *Record {
	with := *r
	with.gaps = decide
	return &with
}

// checkGaps finds missing heads: those before the last head, and that of a step that was evaluated, since evaluation
// comes after the head.
func (v *Visible) checkGaps(ctx context.Context) error {
	e := GapError{Run: v.run}
	there := map[int]bool{}
	last := 0
	for _, s := range v.steps {
		there[s], last = true, s
	}
	e.Later = last
	if v.prepare.Note[schema.NoteEvaluates] != "" {
		return nil // another run has made the policy, and its steps
	}
	_, _, evaluated, err := v.record.writer.Lookup(ctx, schema.At(v.run, last+1, schema.StageEvaluate))
	if err != nil {
		return err
	}
	if evaluated {
		last++
		e.Later = last
	}
	for step := 1; step <= last; step++ {
		if !there[step] {
			e.Steps = append(e.Steps, step)
		}
	}
	switch {
	case len(e.Steps) == 0:
		return nil
	case v.record.gaps == nil:
		return &e
	}
	return v.record.gaps(&e)
}
