package analysis

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// StepSummary holds the figures of one finished step, computed from its rows.
type StepSummary struct {
	Step          int
	Gen           int     // of a replay; 0 for the generations that the head names
	Trajectories  int     // with a reward
	Excluded      int     // without a reward, because something failed on them
	Reward        float64 // mean
	Success       float64
	KeptGroups    int
	DroppedGroups int
	Kept          int // trajectories
	// Means over the step's optimiser steps; all 0 if the step trained on nothing.
	KL, ClipFraction float64
	// Entropy and GradNorm are likewise; nil if the trainer does not tell.
	Entropy, GradNorm *float64
	Updates           int // optimiser steps
	// ReferenceKL is the mean divergence from the reference, if the loss uses one.
	ReferenceKL *float64 `json:",omitempty"`
	// Advantages are those that the update trained on; nil if it trained on nothing or they were not recorded.
	Advantages *schema.Advantages `json:",omitempty"`
	// Critic describes the update of the critic, if there is one.
	Critic *schema.CriticFigures `json:",omitempty"`
	// Mismatch compares inference servers with the trainer, if servers sampled.
	Mismatch *Mismatch `json:",omitempty"`
	Lengths  Lengths   `json:"-"`
}

// Overview summarises a run.
type Overview struct {
	Run         Run
	Steps       []StepSummary
	Evaluations []Evaluation
	Replays     []StepSummary // with AllGenerations: each replayed step in each generation
	// Before is what the world offers before training; nil prints nothing of it.
	Before *diagnose.PropertyReport
}

// Overview reads a run's finished steps and evaluations as the heads name them. With AllGenerations it also lists
// replays.
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
	apart, err := v.mismatches(ctx)
	if err != nil {
		return out, err
	}
	for _, step := range v.steps {
		out.Steps = append(out.Steps, summarise(step, rewards[step], selections[step], updates[step]))
		out.Steps[len(out.Steps)-1].Mismatch = apart[step]
	}
	out.Evaluations, err = v.evaluations(ctx, out.Run.Planned)
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

func summarise(step int, rewards []schema.RewardRow, selection []schema.SelectionRow,
	updates []schema.UpdateRow) StepSummary {
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
	onBatch := slices.DeleteFunc(slices.Clone(updates),
		func(u schema.UpdateRow) bool { return u.Source != nil && *u.Source == schema.SourceReplay })
	for _, u := range onBatch {
		n := float64(len(onBatch))
		out.Entropy = schema.AddShare(out.Entropy, u.Entropy, n)
		out.KL += u.KL / n
		out.ClipFraction += u.ClipFraction / n
		out.GradNorm = schema.AddShare(out.GradNorm, u.GradNorm, n)
		out.ReferenceKL = schema.AddShare(out.ReferenceKL, u.ReferenceKL, n)
	}
	return out
}

// optimiserSteps counts the optimiser steps of an update's rows: one that trained on the batch and on replayed rows has
// two rows.
func optimiserSteps(updates []schema.UpdateRow) int {
	steps := map[int64]bool{}
	for _, u := range updates {
		steps[u.OptimizerStep] = true
	}
	return len(steps)
}

// Write prints the overview as text.
func (o Overview) Write(w io.Writer) error {
	p := terminal.NewPrinter(w)
	p.Line("run      %s", o.Run.Run)
	p.Line("recipe   %s, seed %d", o.Run.Recipe, o.Run.Seed)
	p.Line("created  %s", o.Run.Created)
	if o.Run.Measures() {
		p.Line("steps    none: it evaluates a policy, %s", o.Run.State())
	} else {
		p.Line("steps    %d done of %d, %s", o.Run.StepsDone, max(o.Run.Planned, o.Run.StepsDone), o.Run.State())
	}
	o.Run.explain(p)
	if len(o.Evaluations) > 0 {
		p.Line("\nevaluation        success [95%% interval]  problems  greedy  tool errors*")
	}
	for _, e := range o.Evaluations {
		name := e.Tag
		if e.Step != NoStep && !e.model {
			name = fmt.Sprintf("%s, step %d", e.Tag, e.Step)
		}
		s := e.Summary
		p.Line("%-16s  %-22s  %8d  %6s  %12s", name, s.Rate, s.N, s.GreedyWords(), s.ToolErrorWords())
		for _, more := range e.More() {
			p.Line("  %s", more)
		}
	}
	if len(o.Evaluations) > 0 {
		p.Line("* share of the calls in successful trajectories; – means that there is no data")
	}
	if o.Before != nil {
		printProperties(p, o.Before)
	}
	if len(o.Steps) > 0 {
		p.Line("\n step reward success groups      rows entropy      KL  clip   grad  advantage")
	}
	var apart *Mismatch
	for _, s := range o.Steps {
		p.Line("%s", s.line(true))
		apart = cmp.Or(s.Mismatch, apart)
	}
	if apart != nil {
		p.Line("in the last step %s", apart)
	}
	if len(o.Replays) > 0 {
		p.Line("\nreplays, which no head names\n step reward success groups      rows generation")
	}
	for _, s := range o.Replays {
		p.Line("%s %10d", s.line(false), s.Gen)
	}
	return p.Close()
}

// noData stands for a figure that there is none of, where 0 would be a figure.
const noData = "–"

// explain says why an unfinished run takes no further step, and which command takes it further.
func (r Run) explain(p *terminal.Printer) {
	s := r.State()
	if s.Reason != "" {
		p.Line("         %s", strings.ReplaceAll(s.Reason, "\n", "\n         "))
	}
	if next := s.Next(r.Run); next != "" {
		p.Line("next     %s", next)
	}
}

func (s StepSummary) line(updated bool) string {
	line := fmt.Sprintf("%5d %6s %7s %6s %9s", s.Step, s.text("reward"), s.text("success"),
		fmt.Sprintf("%d/%d", s.KeptGroups, s.KeptGroups+s.DroppedGroups), fmt.Sprintf("%d/%d", s.Kept, s.Trajectories))
	if updated {
		line += s.updateColumns()
	}
	if s.Excluded > 0 {
		line += fmt.Sprintf("\n      %d excluded", s.Excluded)
	}
	if c := s.Critic; updated && c != nil {
		line += "\n      critic: " + criticWords(*c)
	}
	return line
}

// updateColumns are the figures of the step's update; a step that trained on nothing has none.
func (s StepSummary) updateColumns() string {
	advantage := ""
	if a := s.Advantages; a != nil {
		advantage = fmt.Sprintf("%.2f±%.2f", a.Mean, a.Std)
	} else if s.Updates == 0 {
		advantage = noData
	}
	return fmt.Sprintf(" %7s %7s %5s %6s %10s", s.text("entropy"), s.text("kl"), s.text("clip_fraction"),
		s.text("grad_norm"), advantage)
}

// criticWords describes how well the critic predicts the returns.
func criticWords(c schema.CriticFigures) string {
	words := fmt.Sprintf("loss %.4f, clipped %.1f%%, value %.3f of return %.3f", c.Loss, 100*c.ClipFraction, c.Value,
		c.Return)
	if c.ExplainedVariance != nil {
		words += fmt.Sprintf(", explains %.1f%% of the returns' variance", 100**c.ExplainedVariance)
	}
	return words
}
