package runs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/workflows"
)

// ProgressView prints a run's progress: a table line for each step, and on a terminal a bar with the remaining time.
type ProgressView struct {
	w       io.Writer
	screen  *Screen // nil where lines stay
	started time.Time
	spoke   time.Time // when the last line was printed
	shown   int       // last step printed
	shards  int       // shards of an evaluation that were printed as done
	first   int       // first step seen, for the remaining time
	firstAt time.Time
	stage   string
	parked  bool
	paused  bool
	header  bool
	warm    bool
	width   int    // columns of the terminal; 0: as many as needed
	work    Work   // what the run is doing
	retried string // the reason to try again that was printed last
	edited  string // files that the last warning named
	idle    bool   // it was said that a step's advantages are all 0
	noted   int    // notes that were printed
	at      int    // last step whose evaluation was printed
	// offer prints what the world offers before training, once it is known; nil prints nothing.
	offer   func(p workflows.Progress)
	offered bool // what the world offers before training was printed, or will not be
}

// NewProgressView makes a view that writes to w. On a terminal it draws a bar: on w itself where that is a Screen.
func NewProgressView(w io.Writer, terminal bool) *ProgressView {
	v := &ProgressView{w: w, started: time.Now(), spoke: time.Now()}
	if terminal {
		screen, ok := w.(*Screen)
		if !ok {
			screen = NewScreen(w)
		}
		v.w, v.screen, v.width = screen, screen, screen.Width()
	}
	return v
}

// Show prints the part of p that was not shown before.
func (v *ProgressView) Show(p workflows.Progress) {
	if p.Stage != v.stage && p.Step == 0 {
		v.line(fmt.Sprintf("%6.1fs  %s", time.Since(v.started).Seconds(), stageWords(p.Stage)))
	}
	v.stage = p.Stage
	v.waiting(p)
	for ; v.noted < len(p.Notes); v.noted++ {
		v.line("note: " + p.Notes[v.noted])
	}
	if p.Warm != nil && !v.warm {
		v.warm = true
		v.line(fmt.Sprintf("%6.1fs  warm start: %s", time.Since(v.started).Seconds(), evaluationWords(*p.Warm)))
	}
	if v.offer != nil { // before the line of the first step
		v.offer(p)
	}
	for _, l := range p.Lines {
		v.measured(p, l.Step-1)
		if l.Step <= v.shown {
			continue
		}
		if !v.header {
			v.header = true
			v.line(v.choose(stepHeader, narrowHeader))
		}
		if v.first == 0 {
			v.first, v.firstAt = l.Step, time.Now()
		}
		v.shown = l.Step
		v.row(l)
		if l.Edited != "" && l.Edited != v.edited {
			v.edited = l.Edited
			v.line("warning: " + l.EditedWords())
		}
		if l.Advantages != nil && l.Advantages.Zero == 1 && !v.idle {
			v.idle = true
			v.line(fmt.Sprintf("note: all advantages of step %d are 0: its update learnt nothing from the rewards; "+
				"resample.reject_equal=true drops groups whose rewards are equal", l.Step))
		}
	}
	v.measured(p, v.shown)
	if e := p.Evaluating; e != nil && e.Done > v.shards {
		v.shards = e.Done
		v.line(fmt.Sprintf("%6.1fs  %s", time.Since(v.started).Seconds(), e))
	}
	v.bar(p)
}

// measured prints the evaluations after steps up to one. An evaluation alongside the next step comes after its line.
func (v *ProgressView) measured(p workflows.Progress, through int) {
	for _, m := range p.Measured {
		if m.Step > v.at && m.Step <= through {
			v.at = m.Step
			v.line("        " + m.String())
		}
	}
}

// waiting prints once that the run waits for the user's decision, and why.
func (v *ProgressView) waiting(p workflows.Progress) {
	if p.Parked != nil && !v.parked && v.screen != nil {
		DescribeParked(v.w, p)
	}
	paused := p.Paused && p.Stage == workflows.StagePaused
	if paused && !v.paused {
		v.line(fmt.Sprintf("paused: `ropewalk unpause %s` goes on", p.Run))
	}
	v.parked, v.paused = p.Parked != nil, paused
}

// line prints a whole line above the bar.
func (v *ProgressView) line(s string) {
	fmt.Fprintln(v.w, s)
	v.spoke = time.Now()
}

// quietFor is how long nothing is printed before a line says what the run waits for.
const quietFor = time.Minute

// Quiet says what the run waits for if no line was printed for a while and there is no bar. failed is why the run could
// not be asked now.
func (v *ProgressView) Quiet(failed error) {
	if v.screen != nil || time.Since(v.spoke) < quietFor {
		return
	}
	what, _, _ := strings.Cut(stageWords(v.stage), ":")
	switch {
	case failed != nil:
		what += "; the run does not answer: " + failed.Error()
	case v.work.Activity != "":
		what += ", in activity " + v.work.Activity
	}
	v.line(fmt.Sprintf("%6.1fs  still %s", time.Since(v.started).Seconds(), what))
}

// End removes the bar.
func (v *ProgressView) End() {
	if v.screen != nil {
		v.screen.Clear()
	}
}

const barWidth = 30

func (v *ProgressView) bar(p workflows.Progress) {
	if v.screen == nil {
		return
	}
	done, of, what := v.shown, p.Steps, stageWords(p.Stage)
	if declared, _ := stages.Of(p.Stage); v.work.Total > 0 && declared.Waiting != "" {
		what, _, _ = strings.Cut(what, ":") // the warm start or an evaluation, which counts its own work
		done, of = v.work.Done, v.work.Total
	} else if v.shown == 0 && v.work.Failure == "" {
		return
	}
	if of == 0 {
		return
	}
	if e := p.Evaluating; e != nil && p.Final == nil {
		done, of = e.Measured, e.Problems
	}
	filled := min(barWidth*done/of, barWidth)
	text := fmt.Sprintf("[%s%s] %d/%d · %s", strings.Repeat("█", filled), strings.Repeat("░", barWidth-filled),
		done, of, what)
	if again := v.work.Retrying(); again != "" {
		text += " · " + again
	} else if left, known := v.remaining(p); known {
		text += fmt.Sprintf(" · %s left", left)
	}
	v.screen.Bar(fit(text, v.width))
}

// fit cuts a line to a terminal's columns. A bar that wraps could not be removed.
func fit(text string, width int) string {
	if runes := []rune(text); width > 1 && len(runes) >= width {
		return string(runes[:width-2]) + "…"
	}
	return text
}

// Working takes what the run is doing. Where lines stay, a new reason to try again is printed.
func (v *ProgressView) Working(w Work) {
	v.work = w
	if v.screen == nil && w.Failure != "" && w.Failure != v.retried {
		v.line(w.Retrying())
	}
	v.retried = w.Failure
}

// remaining estimates the time of the steps to come by the pace so far. known is false before the second step, and once
// no step is to come.
func (v *ProgressView) remaining(p workflows.Progress) (left time.Duration, known bool) {
	done, todo := v.shown-v.first, p.Steps-v.shown
	if done == 0 || todo <= 0 {
		return 0, false
	}
	each := time.Since(v.firstAt) / time.Duration(done)
	left = (each * time.Duration(todo)).Round(time.Second)
	return left, left > 0
}

func stageWords(stage string) string {
	if declared, _ := stages.Of(stage); declared.Waiting != "" {
		return declared.Waiting
	}
	switch stage {
	case "step":
		return "training"
	case "":
		return "waiting for a worker"
	}
	return stage
}

func evaluationWords(e api.EvaluationSummary) string {
	return fmt.Sprintf("success %s of %d problems, greedy %s, tool errors in positives %s", e.Rate, e.N,
		e.GreedyWords(), e.ToolErrorWords())
}
