package diagnose

// Tool errors in trajectories that were rewarded (rStar2-Agent figure 4, section 2.2.1): the share of the tool
// calls in trajectories with R > 0 that failed. With an outcome-only reward this share stays well above 0;
// resample-on-correct is meant to lower it. The paper's three kinds of failure are a
// call that cannot be read, one whose execution fails and one that runs out of time. Departures:
// outcomes are recorded ones, not a search for the word "error" in the tool's text.

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// Failures counts failing calls by kind.
type Failures struct {
	Format    int // the call could not be read, or named no known tool
	Execution int // the tool ran and failed
	Timeout   int
}

// Total is the number of failing calls.
func (f Failures) Total() int { return f.Format + f.Execution + f.Timeout }

// ToolUse counts the tool calls of one trajectory.
type ToolUse struct {
	Reward   float64
	Calls    int // failing ones included
	Failures Failures
}

// ToolErrors gathers the tool use of rewarded trajectories.
type ToolErrors struct {
	trajectories, calling, failing int
	calls                          int
	failures                       Failures
	shares                         exact.Sum // of each calling trajectory's own share
}

// ToolErrorReport holds the shares; a share with the denominator 0 is 0.
type ToolErrorReport struct {
	Trajectories int // with R > 0
	Calling      int // of those, with at least one call
	Calls        int
	Failures     Failures
	Rate         float64 // Σ failing / Σ calls
	MeanRate     float64 // mean over calling trajectories of failing/calls
	Format       float64 // of all calls, by kind; the three add up to Rate
	Execution    float64
	Timeout      float64
	Touched      float64 // share of calling trajectories with at least one failing call
}

// Add adds trajectories, of which those with R > 0 count. If one is refused, none is added.
func (e *ToolErrors) Add(trajectories ...ToolUse) error {
	for i, u := range trajectories {
		f := u.Failures
		if err := checkCounts("trajectory", i, u.Calls, f.Format, f.Execution, f.Timeout); err != nil {
			return err
		}
		if f.Total() > u.Calls || !usable(u.Reward) {
			return fmt.Errorf(
				"%w: trajectory %d has %d failing of %d calls and reward %g", ErrBadInput, i, f.Total(), u.Calls,
				u.Reward,
			)
		}
	}
	for _, u := range trajectories {
		if u.Reward > 0 {
			e.add(u)
		}
	}
	return nil
}

func (e *ToolErrors) add(u ToolUse) {
	e.trajectories++
	if u.Calls == 0 {
		return
	}
	e.calling++
	e.calls += u.Calls
	e.failures.Format += u.Failures.Format
	e.failures.Execution += u.Failures.Execution
	e.failures.Timeout += u.Failures.Timeout
	e.shares.Add(share(u.Failures.Total(), u.Calls))
	if u.Failures.Total() > 0 {
		e.failing++
	}
}

// Merge adds another shard's trajectories.
func (e *ToolErrors) Merge(o *ToolErrors) {
	e.trajectories += o.trajectories
	e.calling += o.calling
	e.failing += o.failing
	e.calls += o.calls
	e.failures.Format += o.failures.Format
	e.failures.Execution += o.failures.Execution
	e.failures.Timeout += o.failures.Timeout
	e.shares.Merge(&o.shares)
}

// Report returns the shares.
func (e *ToolErrors) Report() ToolErrorReport {
	return ToolErrorReport{
		Trajectories: e.trajectories, Calling: e.calling, Calls: e.calls, Failures: e.failures,
		Rate:      share(e.failures.Total(), e.calls),
		MeanRate:  over(e.shares.Value(), e.calling),
		Format:    share(e.failures.Format, e.calls),
		Execution: share(e.failures.Execution, e.calls),
		Timeout:   share(e.failures.Timeout, e.calls),
		Touched:   share(e.failing, e.calling),
	}
}
