package workflows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// column is a column that few runs need; the table shows it if one of its steps has a value for it.
type column struct {
	title, align string
	shown        func(StepLine) bool
	cell         func(StepLine) string
}

var rareColumns = [...]column{
	{"lag", "--:", func(l StepLine) bool { return l.Lag > 0 }, func(l StepLine) string { return fmt.Sprint(l.Lag) }},
	{"rounds", "--:", func(l StepLine) bool { return l.Rounds > 0 },
		func(l StepLine) string { return fmt.Sprint(l.Rounds) }},
	{"KL to reference", "--:", func(l StepLine) bool { return l.ReferenceKL != nil }, referenceCell},
	{"critic", ":--", func(l StepLine) bool { return l.Critic != nil }, criticCell},
	{"replay buffer", ":--", func(l StepLine) bool { return l.Buffer != nil }, bufferCell},
	{"excluded", "--:", func(l StepLine) bool { return l.Excluded > 0 },
		func(l StepLine) string { return fmt.Sprint(l.Excluded) }},
}

// mainColumns are the figures that tell how a run goes, the most important first: the UI cuts wide tables off at the
// right. moreColumns are the others, in a table of their own.
var (
	mainColumns = []column{
		{"reward", "--:", always, func(l StepLine) string { return known(l.Trajectories > 0, "%.3f", l.Reward) }},
		{"success", "--:", always,
			func(l StepLine) string { return known(l.Trajectories > 0, "%.1f%%", 100*l.Success) }},
		{"kept", "--:", always,
			func(l StepLine) string { return fmt.Sprintf("%d/%d", l.KeptGroups, l.KeptGroups+l.DroppedGroups) }},
		{"entropy", "--:", always, func(l StepLine) string { return told(l, "%.3f", l.Entropy) }},
		{"seconds", "--:", always, func(l StepLine) string { return fmt.Sprintf("%.1f", l.Seconds) }},
	}
	moreColumns = []column{
		{"tool errors", "--:", always,
			func(l StepLine) string { return known(l.CalledTools(), "%.1f%%", 100*l.ToolErrorPositive) }},
		{"advantage", "--:", always, advantageCell},
		{"KL", "--:", always, func(l StepLine) string { return known(l.Trained(), "%.5f", l.KL) }},
		{"clip", "--:", always, func(l StepLine) string { return known(l.Trained(), "%.3f", l.ClipFraction) }},
		{"grad", "--:", always, func(l StepLine) string { return told(l, "%.3f", l.GradNorm) }},
	}
)

func always(StepLine) bool { return true }

// NoData stands for a figure that a step does not have, where 0 would be a figure.
const NoData = "–"

// known formats a figure, or says that there is none.
func known(there bool, format string, figure float64) string {
	if !there {
		return NoData
	}
	return fmt.Sprintf(format, figure)
}

// told is known for figures that not every trainer tells.
func told(l StepLine, format string, figure *float64) string {
	return known(l.Trained() && figure != nil, format, schema.OrZero(figure))
}

// Trained reports whether the step's update had anything to train on.
func (l StepLine) Trained() bool {
	return l.Advantages != nil || schema.OrZero(l.Entropy) != 0 || schema.OrZero(l.GradNorm) != 0
}

// CalledTools reports whether a positive trajectory called a tool.
func (l StepLine) CalledTools() bool { return l.PositiveCalls > 0 }

// stepTables renders the latest steps, newest first.
func (p *Progress) stepTables(b *strings.Builder) {
	main, more := slices.Clone(mainColumns), slices.Clone(moreColumns)
	for _, c := range rareColumns {
		if slices.ContainsFunc(p.Lines, c.shown) {
			more = append(more, c)
		}
	}
	p.stepTable(b, main)
	b.WriteString("\n")
	p.stepTable(b, more)
}

func (p *Progress) stepTable(b *strings.Builder, columns []column) {
	title, align := "| step |", "|--:|"
	for _, c := range columns {
		title, align = title+" "+c.title+" |", align+c.align+"|"
	}
	b.WriteString(title + "\n" + align + "\n")
	for _, l := range slices.Backward(p.Lines) {
		fmt.Fprintf(b, "| %d |", l.Step)
		for _, c := range columns {
			if text := c.cell(l); text != "" {
				b.WriteString(" " + text)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
}

// advantageCell renders mean ± standard deviation.
func advantageCell(l StepLine) string {
	if l.Advantages == nil {
		return NoData
	}
	return fmt.Sprintf("%.3f ± %.3f", l.Advantages.Mean, l.Advantages.Std)
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

func bufferCell(l StepLine) string {
	r := l.Buffer
	switch {
	case r == nil:
		return ""
	case !r.Consumed:
		return fmt.Sprintf("%d held, P50 %.3f", r.Size, r.P50)
	}
	return fmt.Sprintf("%d learnt from again: mean Ã %.3f, P50 %.3f, γ %.3f", r.Imitated, r.Recalibrated, r.P50,
		r.Gamma)
}
