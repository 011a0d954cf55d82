package analysis

import (
	"context"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// ColdStart compares the policy before a warm start with the one after it, on the same held-out problems. A warm start
// on the form of calls alone should raise the validity of calls and not success (rStar2 Table 1).
type ColdStart struct {
	Before ColdStartPart `json:"before"`
	After  ColdStartPart `json:"after"`
	// Change is the difference of success, paired by problem.
	Change evaluation.Difference `json:"success_difference"`
}

// ColdStartPart holds the figures of one of the two policies.
type ColdStartPart struct {
	Calls   evaluation.Validity `json:"valid_calls"`
	Success api.Rate            `json:"success"`
}

// Raised says that calls are valid more often, beyond both 95% intervals.
func (c ColdStart) Raised() bool { return c.After.Calls.Rate.CILow > c.Before.Calls.Rate.CIHigh }

// Unchanged says that the 95% interval of the difference of success holds 0.
func (c ColdStart) Unchanged() bool { return c.Change.Low <= 0 && c.Change.High >= 0 }

// Verdicts are both findings in words.
func (c ColdStart) Verdicts() (calls, success string) {
	calls, success = "not raised", "changed"
	if c.Raised() {
		calls = "raised"
	}
	if c.Unchanged() {
		success = "unchanged"
	}
	if c.Change.Low == 0 && c.Change.High == 0 { // resampling shows no spread, so an interval would say nothing
		return calls, success + ", no problem is solved more or less often"
	}
	return calls, fmt.Sprintf("%s, %+.1f points [%+.1f, %+.1f]", success, 100*c.Change.Mean, 100*c.Change.Low,
		100*c.Change.High)
}

// ColdStart returns the comparison; nil for a run that does not measure the policy before its warm start, has not
// evaluated both policies yet, or does not record its held-out episodes.
func (r *Record) ColdStart(ctx context.Context, run string) (*ColdStart, error) {
	v, err := r.Visible(ctx, run)
	if err != nil {
		return nil, err
	}
	seed, err := v.Seed(ctx)
	if err != nil {
		return nil, err
	}
	var out ColdStart
	var rows [2][]schema.EvaluationRow
	parts := []*ColdStartPart{&out.Before, &out.After}
	for i, stage := range []string{schema.StageInitial, schema.StageEvaluate} {
		m, _, found, err := r.writer.Lookup(ctx, owned(v.lineage, schema.AtInit(run, stage)))
		if err != nil || !found {
			return nil, err
		}
		if rows[i], err = rowsIn[schema.EvaluationRow](ctx, r, m); err != nil {
			return nil, err
		}
		calls, err := rowsIn[schema.EvaluationCallRow](ctx, r, m, "trajectory_id", "status", "excluded")
		if err != nil {
			return nil, err
		}
		if parts[i].Calls, found = evaluation.ValidityOf(rows[i], calls, seed); !found {
			return nil, nil
		}
		parts[i].Success = evaluation.Summarise(evaluation.Sampled(rows[i]), seed).Rate
	}
	both := false
	if out.Change, both = evaluation.Differ(rows[0], rows[1], -1, seed); !both {
		return nil, nil
	}
	return &out, nil
}

// WriteColdStart prints what a warm start on the form of calls changed.
func WriteColdStart(w io.Writer, c ColdStart) {
	calls, success := c.Verdicts()
	fmt.Fprintf(w, "warm start  on the form of calls alone, before → after, held-out problems:\n")
	fmt.Fprintf(w, "  valid     %s → %s of episodes call, and validly (%d of %d → %d of %d calls): %s\n",
		c.Before.Calls.Rate, c.After.Calls.Rate, c.Before.Calls.Valid, c.Before.Calls.Calls, c.After.Calls.Valid,
		c.After.Calls.Calls, calls)
	fmt.Fprintf(w, "  success   %s → %s: %s\n", c.Before.Success, c.After.Success, success)
}
