package workflows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// column is one that hardly any run needs: it is shown where a step of the table has it.
type column struct {
	title, align string
	shown        func(StepLine) bool
	cell         func(StepLine) string
}

var rareColumns = [...]column{
	{"rounds", "--:", func(l StepLine) bool { return l.Rounds > 0 }, func(l StepLine) string { return fmt.Sprint(l.Rounds) }},
	{"KL to reference", "--:", func(l StepLine) bool { return l.ReferenceKL != nil }, referenceCell},
	{"critic", ":--", func(l StepLine) bool { return l.Critic != nil }, criticCell},
	{"replay", ":--", func(l StepLine) bool { return l.Replay != nil }, replayCell},
	{"excluded", "--:", func(l StepLine) bool { return l.Excluded > 0 }, func(l StepLine) string { return fmt.Sprint(l.Excluded) }},
}

// stepTable draws the latest steps, the newest first.
func (p *Progress) stepTable(b *strings.Builder) {
	var rare []column
	for _, c := range rareColumns {
		if slices.ContainsFunc(p.Lines, c.shown) {
			rare = append(rare, c)
		}
	}
	title, align := "", ""
	for _, c := range rare {
		title, align = title+" "+c.title+" |", align+c.align+"|"
	}
	b.WriteString("| step | reward | success | tool errors | groups kept | advantage | entropy | KL | clip | grad | seconds |" + title + "\n")
	b.WriteString("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|" + align + "\n")
	for i := len(p.Lines) - 1; i >= 0; i-- {
		l := p.Lines[i]
		fmt.Fprintf(b, "| %d | %.3f | %.1f%% | %.1f%% | %d of %d |%s | %.3f | %.5f | %.3f | %.3f | %.2f |",
			l.Step, l.Reward, 100*l.Success, 100*l.ToolErrorPositive, l.KeptGroups, l.KeptGroups+l.DroppedGroups,
			advantageCell(l.Advantages), l.Entropy, l.KL, l.ClipFraction, l.GradNorm, l.Seconds)
		for _, c := range rare {
			if text := c.cell(l); text != "" {
				b.WriteString(" " + text)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
}

// advantageCell is mean ± standard deviation.
func advantageCell(a *schema.Advantages) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf(" %.3f ± %.3f", a.Mean, a.Std)
}

func referenceCell(l StepLine) string {
	if l.ReferenceKL == nil {
		return ""
	}
	return fmt.Sprintf("%.5f", *l.ReferenceKL)
}

func criticCell(l StepLine) string {
	c := l.Critic
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("loss %.4f, clipped %.3f, value %.3f of return %.3f", c.Loss, c.ClipFraction, c.Value, c.Return)
	if c.ExplainedVariance != nil {
		text += fmt.Sprintf(", explains %.3f", *c.ExplainedVariance)
	}
	return text
}

func replayCell(l StepLine) string {
	r := l.Replay
	switch {
	case r == nil:
		return ""
	case !r.Consumed:
		return fmt.Sprintf("%d held, P50 %.3f", r.Size, r.P50)
	}
	return fmt.Sprintf("%d learnt from again: mean Ã %.3f, P50 %.3f, γ %.3f", r.Imitated, r.Recalibrated, r.P50, r.Gamma)
}
