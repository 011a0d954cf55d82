package simulate

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText prints a comparison.
func (c *Comparison) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d rollouts on %d engines\n", c.Workload, c.Rollouts, c.Engines)
	fmt.Fprintf(w, "bound: %.1f s (all work over all engines %.1f s, the longest rollout alone %.1f s)\n",
		c.Bound.Seconds(), c.Bound.Work, c.Bound.Longest)
	fmt.Fprintf(w, "simple bound: %.1f s (engines full all the time %.1f s); the scheduler takes %.2f times as "+
		"long\n\n", c.Bound.Simple(), c.Bound.Engines, c.SimpleRatio())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tseconds\tover the bound\tidle\tevictions\trecomputed tokens\trepeated tokens\tcall s\tp99")
	line := func(name string, r *Result) {
		if r == nil {
			return
		}
		fmt.Fprintf(
			t,
			"%s\t%.1f\t%.2f\t%.1f%%\t%d\t%d\t%d\t%.2f\t%.2f\n",
			name,
			r.Makespan,
			r.Makespan/c.Bound.Seconds(),
			100*r.Idle,
			r.Evictions,
			r.Computed,
			r.Repeated,
			r.Latency,
			r.Late,
		)
	}
	line("scheduler", &c.Dynamic)
	line("static", c.Static)
	line("static, asynchronous", c.Asynchronous)
	if err := t.Flush(); err != nil {
		return err
	}
	d := c.Dynamic.Decisions
	fmt.Fprintf(w, "\nscheduler: %d turns and stretches started, %d parked, %d moved to another engine, %d taken off "+
		"stragglers; %d calls\n", d.Starts, d.Parked, d.Moved, d.Rescued, c.Dynamic.Calls)
	if c.OverSampled {
		fmt.Fprintf(
			w,
			"over-sampling: %d rollouts were stopped. They are the long ones: they would have come to %.0f tokens "+
				"on average, and those that ended have %.0f. What is learnt from them is biased towards short "+
				"rollouts.\n",
			c.Dynamic.Stopped,
			c.Dynamic.StoppedTokens,
			c.Dynamic.EndedTokens,
		)
	}
	return nil
}
