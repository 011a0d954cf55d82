package analysis

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// Write prints the step as text: its figures, then each trajectory turn by turn.
func (s StepView) Write(w io.Writer) error {
	p := &printer{w: w}
	sum := s.Summary
	p.line("run %s, step %d%s: %d trajectories, mean reward %.3f, success %.1f%%", s.Run, sum.Step,
		generationNote(s.Gen), sum.Trajectories, sum.Reward, 100*sum.Success)
	if sum.Excluded > 0 {
		p.line("excluded %d more: they have no reward and no mean includes them", sum.Excluded)
	}
	p.line("kept %d in %d of %d groups%s", sum.Kept, sum.KeptGroups, sum.KeptGroups+sum.DroppedGroups,
		droppedWords(s.Dropped))
	for _, line := range judgedWords(s.Judged) {
		p.line("%s", line)
	}
	if sum.Updates > 0 {
		p.line("update: entropy %s, KL %.5f, clipped %.3f, gradient norm %s (means of %d optimiser steps)",
			told(sum.Entropy), sum.KL, sum.ClipFraction, told(sum.GradNorm), sum.Updates)
	}
	if a := sum.Advantages; a != nil {
		p.line("advantages of its tokens: mean %.4f, standard deviation %.4f, from %.3f to %.3f; %.1f%% are 0, "+
			"%.1f%% positive", a.Mean, a.Std, a.Min, a.Max, 100*a.Zero, 100*a.Positive)
	}
	if sum.Critic != nil {
		p.line("critic: %s", criticWords(*sum.Critic))
	}
	if sum.ReferenceKL != nil {
		p.line("divergence from the reference policy: %.5f nats per token", *sum.ReferenceKL)
	}
	if sum.Mismatch != nil {
		p.line("%s", sum.Mismatch)
	}
	for _, e := range s.Episodes {
		e.write(p, s.layout)
	}
	return p.err
}

// Write prints the evaluation as text, each of its episodes turn by turn.
func (v EvaluationView) Write(w io.Writer) error {
	p := &printer{w: w}
	p.line("run %s, evaluation %s: %d episodes, %d solved", v.Run, evaluatedWhen(v.Step), v.Recorded, v.Solved)
	for _, e := range v.Episodes {
		e.write(p, v.layout)
	}
	return p.err
}

func evaluatedWhen(step int) string {
	if step == NoStep {
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

func (e Episode) write(p *printer, layout Layout) {
	layout = layout.Of(e.Prompt)
	p.line("\n── trajectory %s · %s", e.Selection.TrajectoryID, e.outcome())
	e.writeProblem(p, layout)
	for _, turn := range e.Turns {
		e.writeTurn(p, turn, layout)
	}
	t := e.Trajectory
	if t.TrajectoryID == "" {
		p.line("end        it was not assembled")
		return
	}
	answer := "no answer"
	if t.HasAnswer {
		answer = "answer " + printable(t.FinalAnswer)
	}
	p.line("end        %s · %s · %d turns, %d tool calls (%d failed), %d tokens, %d of them written by the policy",
		answer, t.Finish, t.Turns, t.ToolCalls, t.ToolErrors, t.Tokens, t.ResponseTokens)
	if e.Judgement != nil {
		p.line("%s", e.judgedLine())
	}
}

// outcome describes the trajectory's reward and whether it entered the update, or what failed.
func (e Episode) outcome() string {
	if e.Held != nil {
		return e.HeldOutcome()
	}
	if why := e.Selection.Excluded; why != nil {
		return "no reward · excluded: " + printable(*why)
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
func (e Episode) writeProblem(p *printer, layout Layout) {
	if e.Prompt.Part != nil {
		p.line("part       %s", printable(*e.Prompt.Part))
	}
	if len(e.Transitions) > 0 {
		p.line("task       level %d", e.Trajectory.Level)
		p.block("seen", layout.Task(e.Prompt))
		return
	}
	if e.Trajectory.Messages != nil {
		p.line("task       %s   (%s)", printable(e.Trajectory.ProblemID), e.Trajectory.Source)
		p.block("problem", e.Prompt.Problem)
		return
	}
	p.line("problem    %s   (level %d, answer %s)", printable(e.Prompt.Problem), e.Trajectory.Level,
		printable(e.Trajectory.Gold))
}

// fate describes with what advantage the trajectory entered the update, or why it did not.
func (e Episode) fate() string {
	s := e.Selection
	if !s.Kept {
		return fmt.Sprintf("dropped: %s (group mean %.3g, variance %.3g)", s.Reason, s.GroupMean, s.GroupVariance)
	}
	words := fmt.Sprintf("kept: count %d, weight %.3g", s.Count, s.Weight)
	if s.Masked != nil {
		words += ", masked out of the loss: " + printable(*s.Masked)
	}
	if e.Advantage != nil {
		words = fmt.Sprintf("advantage %+.3f · %s", *e.Advantage, words)
	}
	return words
}

func (e Episode) writeTurn(p *printer, t schema.TurnRow, layout Layout) {
	p.line("turn %d%s", t.Turn, summaryMark(t))
	if t.Observation != "" && (t.Turn == 0 || len(e.Transitions) == 0) { // the transition before has shown it
		p.block("  observed", strings.TrimLeft(t.Observation, "\n"))
	}
	if t.Excluded != nil {
		p.line("             (no response: %s)", printable(*t.Excluded))
		return
	}
	p.block("  policy", t.Response)
	if t.Finish == "length" {
		p.line("             (cut at the token limit)")
	}
	for _, c := range e.Calls {
		if c.Turn != t.Turn {
			continue
		}
		status := c.Status
		if c.Excluded != nil {
			status = "no verdict: " + printable(*c.Excluded)
		}
		if c.ExitCode != 0 {
			status += fmt.Sprintf(", exit code %d", c.ExitCode)
		}
		p.line("  call %-6d%s: %s", c.Call, cmp.Or(c.Name, "(not a valid call)"), status)
		if e.Trajectory.Messages != nil { // recorded, not run
			p.block("    given", c.Arguments)
			p.block("    answer", c.Response)
		}
		p.block("    code", c.Code)
		p.block("    stdin", c.Stdin)
		p.block("    stdout", layout.Text(c.Name, c.Stdout))
		p.block("    stderr", c.Stderr)
		p.block("    value", c.Value)
	}
	for _, x := range e.Transitions {
		if x.Turn == t.Turn {
			p.block("  action", x.Action)
			p.line("  led to   │ %s", printable(Verdict(x)))
			p.block("  seen", layout.Text("", x.Observation))
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
func (p *printer) block(name, text string) {
	if text == "" {
		return
	}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i > 0 {
			name = ""
		}
		p.line("%-11s│ %s", name, printable(line))
	}
}

// printable replaces control characters, so that the output of a policy or its code cannot control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if (r < ' ' && r != '\t') || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '�'
		}
		return r
	}, s)
}
