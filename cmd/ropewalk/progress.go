package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// progressView prints a table line per step, and on a terminal a bar with the remaining time.
type progressView struct {
	w        io.Writer
	redraw   bool
	started  time.Time
	shown    int // last step printed
	first    int // first step seen, for the remaining time
	firstAt  time.Time
	stage    string
	parked   bool
	paused   bool
	header   bool
	warm     bool
	barDrawn bool
}

func newProgressView(w io.Writer, redraw bool) *progressView {
	return &progressView{w: w, redraw: redraw, started: time.Now()}
}

// show prints what p has that was not shown before.
func (v *progressView) show(p workflows.Progress) {
	if p.Stage != v.stage && p.Step == 0 {
		v.line(fmt.Sprintf("%6.1fs  %s", time.Since(v.started).Seconds(), stageWords(p.Stage)))
	}
	v.stage = p.Stage
	v.waiting(p)
	if p.Warm != nil && !v.warm {
		v.warm = true
		v.line(fmt.Sprintf("%6.1fs  warm start: %s", time.Since(v.started).Seconds(), evaluationWords(*p.Warm)))
	}
	for _, l := range p.Lines {
		if l.Step <= v.shown {
			continue
		}
		if !v.header {
			v.header = true
			v.line(stepHeader)
		}
		if v.first == 0 {
			v.first, v.firstAt = l.Step, time.Now()
		}
		v.shown = l.Step
		v.line(stepRow(l))
	}
	v.bar(p)
}

// waiting says once that the run waits for a person, and for what.
func (v *progressView) waiting(p workflows.Progress) {
	if p.Parked != nil && !v.parked && v.redraw {
		v.clear()
		describeParked(v.w, p)
	}
	paused := p.Paused && p.Stage == workflows.StagePaused
	if paused && !v.paused {
		v.line(fmt.Sprintf("paused: `ropewalk unpause %s` goes on", p.Run))
	}
	v.parked, v.paused = p.Parked != nil, paused
}

// line prints a whole line above the bar.
func (v *progressView) line(s string) {
	v.clear()
	fmt.Fprintln(v.w, s)
}

func (v *progressView) clear() {
	if v.barDrawn {
		fmt.Fprint(v.w, "\r\x1b[K")
		v.barDrawn = false
	}
}

func (v *progressView) end() { v.clear() }

const barWidth = 30

func (v *progressView) bar(p workflows.Progress) {
	if !v.redraw || p.Steps == 0 || v.shown == 0 {
		return
	}
	v.clear()
	filled := barWidth * v.shown / p.Steps
	fmt.Fprintf(v.w, "[%s%s] %d/%d · %s · %s left", strings.Repeat("█", filled), strings.Repeat("░", barWidth-filled),
		v.shown, p.Steps, stageWords(p.Stage), v.remaining(p))
	v.barDrawn = true
}

func (v *progressView) remaining(p workflows.Progress) string {
	done := v.shown - v.first
	if done == 0 {
		return "…"
	}
	each := time.Since(v.firstAt) / time.Duration(done)
	return (each * time.Duration(p.Steps-v.shown)).Round(time.Second).String()
}

const stepHeader = "  step  reward success  tool-err  kept/drop  adv-mean adv-std  entropy       KL    clip  grad    sec  rollout sandbox  reward  update   other"

func stepRow(l workflows.StepLine) string {
	s := l.StageSeconds
	reward := s[wire.StageReward] + s[wire.StageAssemble] + s[wire.StageGrade]
	other := s[wire.StagePrompts] + s[wire.StageResample] + s[wire.StageForward] + s[wire.StageAdvantage] + s[wire.StageBuffer] + s[wire.StagePublish] + s[wire.StageCommit]
	row := fmt.Sprintf("%6d  %6.3f  %5.1f%%    %5.1f%%  %4d/%-4d  %s  %7.3f %8.5f  %5.3f %5.2f %6.2f  %7.2f %7.2f %7.2f %7.2f %7.2f",
		l.Step, l.Reward, 100*l.Success, 100*l.ToolErrorPositive, l.KeptGroups, l.DroppedGroups, advantageWords(l.Advantages), l.Entropy, l.KL,
		l.ClipFraction, l.GradNorm, l.Seconds, s[wire.StageRollout], s[wire.StageSandbox], reward, s[wire.StageUpdate], other)
	if l.Rounds > 1 {
		row += fmt.Sprintf("  %d rounds", l.Rounds)
	}
	if l.Excluded > 0 {
		row += fmt.Sprintf("  %d excluded", l.Excluded)
	}
	if c := l.Critic; c != nil {
		row += "  " + criticWords(*c)
	}
	return row
}

// advantageWords are mean and standard deviation, in columns; dashes of a step that learnt nothing.
func advantageWords(a *schema.Advantages) string {
	if a == nil {
		return fmt.Sprintf("%8s %7s", "–", "–")
	}
	return fmt.Sprintf("%8.3f %7.3f", a.Mean, a.Std)
}

func criticWords(c schema.CriticFigures) string {
	words := fmt.Sprintf("critic: loss %.4f, clipped %.1f%%, value %.3f of return %.3f", c.Loss, 100*c.ClipFraction, c.Value, c.Return)
	if c.ExplainedVariance != nil {
		words += fmt.Sprintf(", explains %.1f%%", 100**c.ExplainedVariance)
	}
	return words
}

func stageWords(stage string) string {
	switch stage {
	case wire.StagePrepare:
		return "preparing: recipe resolved and committed"
	case wire.StageWarmStart:
		return "warm start: cloning the teacher's demonstrations (about a minute; reused when committed before)"
	case wire.StageEvaluate:
		return "evaluating on held-out problems"
	case "step":
		return "training"
	case "":
		return "waiting for a worker"
	}
	return stage
}

func evaluationWords(e wire.EvaluationSummary) string {
	return fmt.Sprintf("success %.1f%% (95%%: %.1f–%.1f, %d problems), greedy %.1f%%, tool errors in positives %.1f%%",
		100*e.Success, 100*e.CILow, 100*e.CIHigh, e.N, 100*e.Greedy, 100*e.ToolErrorRatePositives)
}
