package simulate

import (
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// Options of a comparison.
type Options struct {
	Settings scheduler.Settings
	// Blind gives the scheduler no expected length. Otherwise it is told the mean length of the workload's rollouts, as
	// it would know that of the step before.
	Blind bool
	// Alone leaves static allocation out.
	Alone bool
}

// Comparison is a workload under the scheduler and under static allocation.
type Comparison struct {
	Workload string  `json:"workload"`
	Engines  int     `json:"engines"`
	Rollouts int     `json:"rollouts"`
	Bound    Bound   `json:"bound"`
	Dynamic  Result  `json:"scheduler"`
	Static   *Result `json:"static,omitempty"`
	// Asynchronous is static allocation whose tool calls wait for no one.
	Asynchronous *Result `json:"static_asynchronous,omitempty"`
	Seconds      float64 `json:"simulation_seconds"` // that the simulation of the scheduler took
	OverSampled  bool    `json:"over_sampled,omitempty"`
}

// Ratio is the scheduler's makespan over the bound.
func (c *Comparison) Ratio() float64 { return c.Dynamic.Makespan / c.Bound.Seconds() }

// SimpleRatio is the scheduler's makespan over max(work ÷ engines, longest rollout).
func (c *Comparison) SimpleRatio() float64 { return c.Dynamic.Makespan / c.Bound.Simple() }

// Gain is how many times as long static allocation takes as the scheduler.
func (c *Comparison) Gain() float64 { return c.Static.Makespan / c.Dynamic.Makespan }

// AsynchronousGain is the same for static allocation whose tool calls wait for no one.
func (c *Comparison) AsynchronousGain() float64 { return c.Asynchronous.Makespan / c.Dynamic.Makespan }

// Compare simulates a job.
func Compare(name string, job *Job, o Options) (*Comparison, error) {
	if !o.Blind && o.Settings.Length == 0 {
		o.Settings.Length = job.MeanHeld()
	}
	if job.Need > 0 && o.Settings.Need == 0 {
		o.Settings.Need = job.Need
	}
	c := &Comparison{Workload: name, Engines: len(job.Engines), Rollouts: len(job.Rollouts), Bound: BoundOf(job),
		OverSampled: o.Settings.Need > 0}
	began, err := time.Now(), error(nil)
	if c.Dynamic, err = Dynamic(job, o.Settings); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Seconds = time.Since(began).Seconds()
	if o.Alone {
		return c, nil
	}
	for wait, into := range map[Wait]**Result{ForAll: &c.Static, ForNone: &c.Asynchronous} {
		r, err := Static(job, wait)
		if err != nil {
			return nil, fmt.Errorf("%s, static allocation: %w", name, err)
		}
		*into = &r
	}
	return c, nil
}
