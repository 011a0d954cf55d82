package analysis

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// ErrorRate compares how often the calls or the actions of a run's rollouts failed before training and at its end.
type ErrorRate struct {
	Kind  string     `json:"kind"` // "tool calls" or "actions"
	First FailedPart `json:"first"`
	Last  FailedPart `json:"last"`
	Low   float64    `json:"ci_low"` // the 95% interval (Wilson) of the first step's rate
	High  float64    `json:"ci_high"`
	// NoHigher says that the last step's rate is at most the upper end of the interval.
	NoHigher bool `json:"no_higher"`
}

// FailedPart counts the calls or actions of one step.
type FailedPart struct {
	Step   int     `json:"step"`
	N      int     `json:"n"`
	Errors int     `json:"errors"`
	Rate   float64 `json:"rate"`
}

// ErrorRates returns the rates of failed tool calls, and of actions that their environment does not know or that break
// the protocol's form, in the first and in the last finished step that has any. The first step's rollouts are those of
// the policy before training. A run of one step has none to compare.
func (r *Record) ErrorRates(ctx context.Context, run string) ([]ErrorRate, error) {
	v, err := r.Visible(ctx, run)
	if err != nil {
		return nil, err
	}
	var out []ErrorRate
	for _, kind := range []struct {
		name  string
		count failures
	}{{"tool calls", failedCalls}, {"actions", invalidActions}} {
		first, err := firstCounted(ctx, v, v.steps, kind.count)
		if err != nil {
			return nil, err
		}
		backwards := slices.Clone(v.steps)
		slices.Reverse(backwards)
		last, err := firstCounted(ctx, v, backwards, kind.count)
		if err != nil {
			return nil, err
		}
		if first.Step == last.Step {
			continue
		}
		e := ErrorRate{Kind: kind.name, First: first, Last: last}
		e.Low, e.High = diagnose.Wilson(first.Rate, first.N)
		e.NoHigher = last.Rate <= e.High
		out = append(out, e)
	}
	return out, nil
}

// firstCounted counts the first of the steps that has calls or actions. Without one, the zero value is returned.
func firstCounted(ctx context.Context, v *Visible, steps []int, count failures) (FailedPart, error) {
	for _, step := range steps {
		n, failed, err := count(ctx, v, step)
		if err != nil {
			return FailedPart{}, err
		}
		if n > 0 {
			return FailedPart{Step: step, N: n, Errors: failed, Rate: float64(failed) / float64(n)}, nil
		}
	}
	return FailedPart{}, nil
}

// failures counts the calls or actions of a step that an error did not exclude, and those of them that failed.
type failures func(ctx context.Context, v *Visible, step int) (n, failed int, err error)

func failedCalls(ctx context.Context, v *Visible, step int) (n, failed int, err error) {
	rows, err := stepRows[schema.ToolCallRow](ctx, v, step, "trajectory_id", "status", "excluded")
	rows = slices.DeleteFunc(rows, func(r schema.ToolCallRow) bool { return r.Excluded != nil })
	passed := slices.DeleteFunc(rows, func(r schema.ToolCallRow) bool { return r.Status != string(tool.OK) })
	return len(rows), len(rows) - len(passed), err
}

func invalidActions(ctx context.Context, v *Visible, step int) (n, failed int, err error) {
	rows, err := stepRows[schema.TransitionRow](ctx, v, step, "trajectory_id", "valid", "excluded")
	rows = slices.DeleteFunc(rows, func(r schema.TransitionRow) bool { return r.Excluded != nil })
	valid := slices.DeleteFunc(rows, func(r schema.TransitionRow) bool { return !r.Valid })
	return len(rows), len(rows) - len(valid), err
}

// WriteErrorRates prints one line for each rate.
func WriteErrorRates(w io.Writer, rates []ErrorRate) {
	for _, e := range rates {
		verdict := "no rise"
		if !e.NoHigher {
			verdict = "a rise"
		}
		fmt.Fprintf(w, "failed      %.1f%% of %s in step %d → %.1f%% in step %d: %s (step %d's 95%% interval ends at "+
			"%.1f%%)\n", 100*e.First.Rate, e.Kind, e.First.Step, 100*e.Last.Rate, e.Last.Step, verdict, e.First.Step,
			100*e.High)
	}
}
