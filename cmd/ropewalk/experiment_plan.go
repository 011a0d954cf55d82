package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/activities/evaluate"
	"github.com/ropewalk/ropewalk/activities/warmstart"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/recipes"
)

// plannedTrial is a trial in a dry run. Seconds are those that a done trial has taken, or what another one is expected
// to take; nil where nothing is known. Bytes are what it has stored, or may store at most.
type plannedTrial struct {
	Run       string `json:"run_id"`
	Arm       string `json:"arm"`
	Seed      uint64 `json:"seed"`
	State     string `json:"state"`
	WarmStart string `json:"warm_start"` // trials with the same text share it; "" if the recipe has none
	// Evaluation identifies the evaluation before step 1 likewise; "" if the trial shares it with none.
	Evaluation string   `json:"evaluation"`
	Seconds    *float64 `json:"seconds"`
	Measured   bool     `json:"measured"` // a done trial took Seconds, one of the same arm if there is one
	Bytes      int64    `json:"bytes"`
}

// sharing says which trials begin with the same thing: each text belongs to the first trial that has it.
type sharing map[string]string

// of says whose thing a trial takes that has a text: "own" if it is the first one, and none if the text is "".
func (s sharing) of(run, text, none string) string {
	if text == "" {
		return none
	}
	if first, ok := s[text]; ok {
		return "of " + first
	}
	s[text] = run
	return "own"
}

// dryRun lists the trials and what those that are not done take.
func (o *opened) dryRun(ctx context.Context, con *console) error {
	observed, err := o.observe(ctx, con)
	if err != nil {
		return err
	}
	measured := map[string]experiment.Cost{} // by arm; "" is any
	for _, t := range observed {
		if t.Result != nil && t.Result.Done {
			measured[t.Arm], measured[""] = t.Result.Cost, t.Result.Cost
		}
	}
	planned := make([]plannedTrial, len(observed))
	for i, t := range observed {
		p := plannedTrial{Run: t.Run, Arm: t.Arm, Seed: t.Seed, State: t.State}
		if p.WarmStart, err = warmstart.Shared(&t.Resolved.Recipe); err != nil {
			return err
		}
		if p.Evaluation, err = evaluate.Shared(&t.Resolved.Recipe); err != nil {
			return err
		}
		if t.Result != nil && t.Result.Done {
			p.Seconds, p.Measured, p.Bytes = new(t.Result.Cost.Seconds()), true, t.Result.Cost.Bytes
		} else {
			like, known := measured[t.Arm]
			if !known {
				like = measured[""]
			}
			if err := predict(ctx, &t.Resolved.Recipe, like, &p); err != nil {
				return err
			}
		}
		planned[i] = p
	}
	return con.render(map[string]any{"experiment": o.Name, "trials": planned}, func(p *terminal.Printer) {
		o.printPlan(p, planned)
	})
}

// predict estimates a trial: by what another one took, or else by the plan of its recipe.
func predict(ctx context.Context, r *recipes.Recipe, like experiment.Cost, p *plannedTrial) error {
	if like.Bytes > 0 {
		p.Seconds, p.Measured, p.Bytes = new(like.Seconds()), true, like.Bytes
		return nil
	}
	_, plan, err := planOptions{}.planOf(ctx, r)
	if err != nil {
		return err
	}
	if plan.Step != nil {
		if seconds, known := plan.Step.Seconds(); known {
			p.Seconds = new(seconds * float64(r.Steps))
		}
	}
	if plan.Writes != nil {
		p.Bytes = plan.Writes.Run
	}
	return nil
}

func (o *opened) printPlan(p *terminal.Printer, planned []plannedTrial) {
	p.Row("trial", "arm", "seed", "state", "warm start", "first evaluation", "time", "stored")
	seconds, bytes, unknown, left := 0.0, int64(0), 0, 0
	clones, evaluations := sharing{}, sharing{}
	for _, t := range planned {
		length := "unknown"
		if t.Seconds != nil {
			length = (time.Duration(*t.Seconds) * time.Second).String()
		}
		p.Row(t.Run, t.Arm, t.Seed, cmp.Or(t.State, "new"), clones.of(t.Run, t.WarmStart, "none"),
			evaluations.of(t.Run, t.Evaluation, "own"), length, fmt.Sprintf("%.1f MB", float64(t.Bytes)/1e6))
		if t.State == string(status.Done) {
			continue
		}
		left++
		bytes += t.Bytes
		if t.Seconds == nil {
			unknown++
			continue
		}
		seconds += *t.Seconds
	}
	length := "about " + (time.Duration(seconds) * time.Second / time.Duration(o.Parallel)).String()
	if unknown > 0 {
		length = "a time that is known once a trial is done"
	}
	p.Line("")
	p.Line("%d of %d trials are left, %d at once: %s, and at most %.1f MB", left, len(planned), o.Parallel, length,
		float64(bytes)/1e6)
}
