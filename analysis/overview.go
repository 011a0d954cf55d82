package analysis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// StepSummary is one finished step in figures, worked out of its rows.
type StepSummary struct {
	Step          int
	Gen           int     // of a replay; 0 for what the heads name
	Trajectories  int     // with a reward
	Excluded      int     // without one, because something broke on them
	Reward        float64 // mean
	Success       float64
	KeptGroups    int
	DroppedGroups int
	Kept          int // trajectories
	// Means over the step's optimiser steps; all 0 where the step had nothing to learn from.
	Entropy, KL, ClipFraction, GradNorm float64
	Updates                             int // optimiser steps
	// ReferenceKL is the mean divergence from the reference, where the loss takes it.
	ReferenceKL *float64 `json:",omitempty"`
	// Advantages are those that the update learnt from; nil where it had nothing to learn from, or they
	// were not recorded.
	Advantages *schema.Advantages `json:",omitempty"`
	// Critic is the critic's part of the update, where there is one.
	Critic *schema.CriticFigures `json:",omitempty"`
}

// Overview is a run at a glance.
type Overview struct {
	Run         Run
	Steps       []StepSummary
	Evaluations []Evaluation
	Replays     []StepSummary // with AllGenerations: each replayed step in each generation
}

// Overview reads a run's finished steps and evaluations. With AllGenerations those are what heads
// name, and replays follow by themselves.
func (r *Record) Overview(ctx context.Context, run string) (Overview, error) {
	if r.gen == AllGenerations {
		return r.overviewOfAll(ctx, run)
	}
	v, err := r.Visible(ctx, run)
	if err != nil {
		return Overview{}, err
	}
	var out Overview
	if out.Run, err = r.Run(ctx, run); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return out, fmt.Errorf("%w: %s has no entry in the catalogue", ErrNoRun, run)
		}
		return out, err
	}
	rewards, err := tableRows[schema.RewardRow](ctx, v)
	if err != nil {
		return out, err
	}
	selections, err := tableRows[schema.SelectionRow](ctx, v)
	if err != nil {
		return out, err
	}
	updates, err := tableRows[schema.UpdateRow](ctx, v)
	if err != nil {
		return out, err
	}
	for _, step := range v.steps {
		out.Steps = append(out.Steps, summarise(step, rewards[step], selections[step], updates[step]))
	}
	out.Evaluations, err = v.evaluations(ctx, out.Run.Steps)
	return out, err
}

func (r *Record) overviewOfAll(ctx context.Context, run string) (Overview, error) {
	out, err := r.WithGeneration(Heads).Overview(ctx, run)
	if err != nil {
		return out, err
	}
	all, err := r.Visible(ctx, run)
	if err != nil {
		return out, err
	}
	for _, gen := range all.Replays(NoStep) {
		replay, err := r.WithGeneration(Numbered(gen)).Overview(ctx, run)
		if err != nil {
			return out, err
		}
		for _, s := range replay.Steps {
			if slices.Contains(all.Replays(s.Step), gen) {
				s.Gen = gen
				out.Replays = append(out.Replays, s)
			}
		}
	}
	return out, nil
}

func summarise(step int, rewards []schema.RewardRow, selection []schema.SelectionRow, updates []schema.UpdateRow) StepSummary {
	out := StepSummary{Step: step, Trajectories: len(rewards), Updates: optimiserSteps(updates)}
	for _, r := range rewards {
		out.Reward += r.Reward / float64(len(rewards))
		if r.Success {
			out.Success += 1 / float64(len(rewards))
		}
	}
	groups := map[string]bool{} // has a kept row
	for _, s := range selection {
		groups[s.GroupID] = groups[s.GroupID] || s.Kept
		switch {
		case s.Kept:
			out.Kept++
		case s.Reason == schema.ReasonExcluded:
			out.Excluded++
		}
	}
	for _, kept := range groups {
		if kept {
			out.KeptGroups++
		}
	}
	out.DroppedGroups = len(groups) - out.KeptGroups
	out.Advantages, out.Critic = schema.AdvantagesOf(updates), schema.CriticFiguresOf(updates)
	onBatch := slices.DeleteFunc(slices.Clone(updates), func(u schema.UpdateRow) bool { return u.Source != nil && *u.Source == schema.SourceReplay })
	for _, u := range onBatch {
		n := float64(len(onBatch))
		out.Entropy += u.Entropy / n
		out.KL += u.KL / n
		out.ClipFraction += u.ClipFraction / n
		out.GradNorm += u.GradNorm / n
		if u.ReferenceKL != nil {
			if out.ReferenceKL == nil {
				out.ReferenceKL = new(float64)
			}
			*out.ReferenceKL += *u.ReferenceKL / n
		}
	}
	return out
}

// optimiserSteps counts the steps behind the rows of an update: one that learnt from the batch and from
// replayed rows at once has two.
func optimiserSteps(updates []schema.UpdateRow) int {
	steps := map[int64]bool{}
	for _, u := range updates {
		steps[u.OptimizerStep] = true
	}
	return len(steps)
}

// Write prints the overview for people.
func (o Overview) Write(w io.Writer) error {
	p := &printer{w: w}
	p.line("run      %s", o.Run.Run)
	p.line("recipe   %s, seed %d", o.Run.Recipe, o.Run.Seed)
	p.line("created  %s", o.Run.Created)
	p.line("steps    %d done of %d, %s", o.Run.StepsDone, max(o.Run.Steps, o.Run.StepsDone), o.Run.Status)
	if len(o.Evaluations) > 0 {
		p.line("\nevaluation        success    95%% interval  problems  greedy  tool errors in positives")
	}
	for _, e := range o.Evaluations {
		name := e.Tag
		if e.Step != NoStep {
			name = fmt.Sprintf("%s, step %d", e.Tag, e.Step)
		}
		s := e.Summary
		p.line("%-17s  %5.1f%%  %5.1f%%–%5.1f%%  %8d  %5.1f%%  %23.1f%%", name,
			100*s.Success, 100*s.CILow, 100*s.CIHigh, s.N, 100*s.Greedy, 100*s.ToolErrorRatePositives)
	}
	if len(o.Steps) > 0 {
		p.line("\n  step  reward success  kept/drop  rows kept  entropy       KL    clip   grad  adv-mean adv-std")
	}
	for _, s := range o.Steps {
		p.line("%s", s.line(s.Updates > 0))
	}
	if len(o.Replays) > 0 {
		p.line("\nreplays, which no head names\n  step  reward success  kept/drop  rows kept  generation")
	}
	for _, s := range o.Replays {
		p.line("%s  %10d", s.line(false), s.Gen)
	}
	return p.err
}

func (s StepSummary) line(updated bool) string {
	line := fmt.Sprintf("%6d  %6.3f  %5.1f%%  %4d/%-4d  %4d/%-4d", s.Step, s.Reward, 100*s.Success, s.KeptGroups, s.DroppedGroups, s.Kept, s.Trajectories)
	if updated {
		line += fmt.Sprintf("  %7.3f %8.5f  %6.3f %6.3f", s.Entropy, s.KL, s.ClipFraction, s.GradNorm)
		if a := s.Advantages; a != nil {
			line += fmt.Sprintf("  %8.3f %7.3f", a.Mean, a.Std)
		}
		if c := s.Critic; c != nil {
			line += "  critic: " + criticWords(*c)
		}
	}
	if s.Excluded > 0 {
		line += fmt.Sprintf("  %d excluded", s.Excluded)
	}
	return line
}

// criticWords say how well the critic knows the returns.
func criticWords(c schema.CriticFigures) string {
	words := fmt.Sprintf("loss %.4f, clipped %.1f%%, value %.3f of return %.3f", c.Loss, 100*c.ClipFraction, c.Value, c.Return)
	if c.ExplainedVariance != nil {
		words += fmt.Sprintf(", explains %.1f%% of the returns' variance", 100**c.ExplainedVariance)
	}
	return words
}

// printer writes lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
