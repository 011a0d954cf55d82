package analysis

import (
	"fmt"
	"io"
	"strings"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// Write prints the step as text: its figures, then each trajectory turn by turn.
func (s StepView) Write(w io.Writer) error {
	p := terminal.NewPrinter(w)
	sum := s.Summary
	p.Line("run %s, step %d%s: %d trajectories, mean reward %.3f, success %.1f%%", s.Run, sum.Step,
		generationNote(s.Gen), sum.Trajectories, sum.Reward, 100*sum.Success)
	if sum.Excluded > 0 {
		p.Line("excluded %d more: they have no reward and no mean includes them", sum.Excluded)
	}
	p.Line("kept %d in %d of %d groups%s", sum.Kept, sum.KeptGroups, sum.KeptGroups+sum.DroppedGroups,
		droppedWords(s.Dropped))
	for _, line := range judgedWords(s.Judged) {
		p.Line("%s", line)
	}
	if sum.Updates > 0 {
		p.Line("update: entropy %s, KL %.5f, clipped %.3f, gradient norm %s (means of %d optimiser steps)",
			sum.text("entropy"), sum.KL, sum.ClipFraction, sum.text("grad_norm"), sum.Updates)
	}
	if a := sum.Advantages; a != nil {
		p.Line("advantages of its tokens: mean %.4f, standard deviation %.4f, from %.3f to %.3f; %.1f%% are 0, "+
			"%.1f%% positive", a.Mean, a.Std, a.Min, a.Max, 100*a.Zero, 100*a.Positive)
	}
	if sum.Critic != nil {
		p.Line("critic: %s", criticWords(*sum.Critic))
	}
	if sum.ReferenceKL != nil {
		p.Line("divergence from the reference policy: %.5f nats per token", *sum.ReferenceKL)
	}
	if sum.Mismatch != nil {
		p.Line("%s", sum.Mismatch)
	}
	for _, e := range s.Episodes {
		e.write(p, s.layout)
	}
	return p.Close()
}

// Write prints the evaluation as text, each of its episodes turn by turn.
func (v EvaluationView) Write(w io.Writer) error {
	p := terminal.NewPrinter(w)
	p.Line("run %s, evaluation %s: %d episodes, %d solved", v.Run, evaluatedWhen(v.Step), v.Recorded, v.Solved)
	for _, e := range v.Episodes {
		e.write(p, v.layout)
	}
	return p.Close()
}

func evaluatedWhen(step int) string {
	if step <= 0 {
		return "before the first step"
	}
	return fmt.Sprintf("after step %d", step)
}

func generationNote(g Generation) string {
	if g == Heads {
		return ""
	}
	return ", generation " + g.String()
}

func droppedWords(dropped []Reason) string {
	var parts []string
	for _, r := range dropped {
		parts = append(parts, fmt.Sprintf("%d %s", r.N, r.Name))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; dropped: " + strings.Join(parts, ", ")
}

func (e Episode) write(p *terminal.Printer, layout Layout) {
	layout = layout.Of(e.Prompt)
	p.Line("\n── trajectory %s · %s", e.Selection.TrajectoryID, e.outcome())
	e.writeProblem(p, layout)
	for _, turn := range e.Turns {
		e.writeTurn(p, turn, layout)
	}
	t := e.Trajectory
	if t.TrajectoryID == "" {
		p.Line("end        it was not assembled")
		return
	}
	answer := "no answer"
	if t.HasAnswer {
		answer = "answer " + terminal.Line(t.FinalAnswer)
	}
	p.Line("end        %s · %s · %d turns, %d tool calls (%d failed), %d tokens, %d of them written by the policy",
		answer, t.Finish, t.Turns, t.ToolCalls, t.ToolErrors, t.Tokens, t.ResponseTokens)
	if e.Judgement != nil {
		p.Line("%s", e.judgedLine())
	}
}

// outcome describes the trajectory's reward and whether it entered the update, or what failed.
func (e Episode) outcome() string {
	if e.Held != nil {
		return e.HeldOutcome()
	}
	if why := e.Selection.Excluded; why != nil {
		return "no reward · excluded: " + terminal.Line(*why)
	}
	if e.Reward == nil {
		return "no reward · " + e.fate()
	}
	return fmt.Sprintf("reward %g (%s) · %s", e.Reward.Reward, e.Reward.Verdict, e.fate())
}

// HeldOutcome describes an episode of an evaluation: whether it is solved, and how it was sampled.
func (e Episode) HeldOutcome() string {
	how := fmt.Sprintf("sample %d", e.Held.Sample)
	if e.Held.Greedy {
		how = "greedy"
	}
	if e.Held.Success {
		return "solved · " + how
	}
	return "not solved · " + how
}

// writeProblem prints the problem: what the environment showed first, or a conversation, as a block.
func (e Episode) writeProblem(p *terminal.Printer, layout Layout) {
	if e.Prompt.Part != nil {
		p.Line("part       %s", terminal.Line(*e.Prompt.Part))
	}
	if len(e.Transitions) > 0 {
		p.Line("task       level %d", e.Trajectory.Level)
		block(p, "seen", layout.Task(e.Prompt))
		return
	}
	if e.Trajectory.Messages != nil {
		p.Line("task       %s   (%s)", terminal.Line(e.Trajectory.ProblemID), e.Trajectory.Source)
		block(p, "problem", e.Prompt.Problem)
		return
	}
	p.Line("problem    %s   (level %d, answer %s)", terminal.Line(e.Prompt.Problem), e.Trajectory.Level,
		terminal.Line(e.Trajectory.Gold))
}

// fate describes with what advantage the trajectory entered the update, or why it did not.
func (e Episode) fate() string {
	s := e.Selection
	if !s.Kept {
		return fmt.Sprintf("dropped: %s (group mean %.3g, variance %.3g)", s.Reason, s.GroupMean, s.GroupVariance)
	}
	words := fmt.Sprintf("kept: count %d, weight %.3g", s.Count, s.Weight)
	if s.Masked != nil {
		words += ", masked out of the loss: " + terminal.Line(*s.Masked)
	}
	if e.Advantage != nil {
		words = fmt.Sprintf("advantage %+.3f · %s", *e.Advantage, words)
	}
	return words
}

func (e Episode) writeTurn(p *terminal.Printer, t schema.TurnRow, layout Layout) {
	p.Line("turn %d%s", t.Turn, summaryMark(t))
	if t.Observation != "" && (t.Turn == 0 || len(e.Transitions) == 0) { // the transition before has shown it
		block(p, "  observed", strings.TrimLeft(t.Observation, "\n"))
	}
	if t.Excluded != nil {
		p.Line("             (no response: %s)", terminal.Line(*t.Excluded))
		return
	}
	block(p, "  policy", t.Response)
	if t.Finish == "length" {
		p.Line("             (cut at the token limit)")
	}
	for _, c := range e.CallsOf(t.Turn) {
		call := layout.Call(c)
		p.Line("  call %-6d%s: %s", c.Call, call.Name, call.Outcome())
		for _, part := range call.Parts {
			block(p, "    "+part.Name, part.Text)
		}
	}
	for _, x := range e.MovesOf(t.Turn) {
		for _, part := range layout.Move(x) {
			block(p, "  "+part.Name, part.Text)
		}
	}
}

// summaryMark marks a turn in which the policy wrote a summary of its episode.
func summaryMark(t schema.TurnRow) string {
	if t.IsSummary() {
		return " · summary"
	}
	return ""
}

// block prints a name and, next to it, the lines of a text; nothing for an empty text.
func block(p *terminal.Printer, name, text string) {
	if text == "" {
		return
	}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i > 0 {
			name = ""
		}
		p.Line("%-11s│ %s", name, strings.ReplaceAll(terminal.Plain(line), "\r", `\u000d`))
	}
}
