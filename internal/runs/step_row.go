package runs

import (
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/workflows"
)

// stepHeader and stepRow are the whole table of a run's steps.
const stepHeader = "  step  reward success  tool-err  kept/drop  adv-mean adv-std  entropy       KL    clip  grad   " +
	" sec  rollout sandbox  reward  update   other"

func stepRow(l workflows.StepLine) string {
	spent := map[string]float64{} // by column; other stages in that without a name
	for _, name := range stages.InStep() {
		stage, _ := stages.Of(name)
		spent[stage.Column] += l.StageSeconds[name]
	}
	f := figuresOf(l)
	row := fmt.Sprintf("%6d  %6s  %6s    %6s  %4d/%-4d  %s  %7s %8s  %5s %5s %6.2f  %7.2f %7.2f %7.2f %7.2f %7.2f",
		l.Step, f.reward, f.success, f.toolErrors, l.KeptGroups, l.DroppedGroups, advantageWords(l.Advantages),
		f.entropy, f.kl, f.clip, f.grad, l.Seconds, spent["rollout"], spent["sandbox"], spent["reward"],
		spent["update"], spent[""])
	for _, more := range remarks(l) {
		row += "  " + more
	}
	return row
}

// narrowHeader and narrowRow fit 80 columns. They leave out the advantages and the times of stages, which the report
// and Temporal's UI show.
const narrowHeader = "  step reward success tool-err groups entropy       KL  clip  grad     sec"

func narrowRow(l workflows.StepLine) string {
	f := figuresOf(l)
	return fmt.Sprintf("%6d %6s %7s %8s %6s %7s %8s %5s %5s %7.1f", l.Step, f.reward, f.success, f.toolErrors,
		fmt.Sprintf("%d/%d", l.KeptGroups, l.KeptGroups+l.DroppedGroups), f.entropy, f.kl, f.clip, f.grad, l.Seconds)
}

// row prints a step. On a narrow terminal what few steps have follows on lines of its own.
func (v *ProgressView) row(l workflows.StepLine) {
	v.line(v.choose(stepRow(l), narrowRow(l)))
	if v.narrow() {
		for _, more := range remarks(l) {
			v.line("       " + more)
		}
	}
}

// narrow reports whether the terminal has too few columns for the whole table.
func (v *ProgressView) narrow() bool { return v.width > 0 && v.width <= len(stepHeader) }

// choose chooses the text that fits the terminal.
func (v *ProgressView) choose(wide, narrow string) string {
	if v.narrow() {
		return narrow
	}
	return wide
}

// remarks are what few steps have.
func remarks(l workflows.StepLine) (out []string) {
	if l.Rounds > 1 {
		out = append(out, fmt.Sprintf("%d rounds", l.Rounds))
	}
	if l.Excluded > 0 {
		out = append(out, fmt.Sprintf("%d excluded", l.Excluded))
	}
	if c := l.Critic; c != nil {
		out = append(out, criticWords(*c))
	}
	return out
}

// figures are a step's figures as text; a step without data for one has a dash.
type figures struct{ reward, success, toolErrors, entropy, kl, clip, grad string }

func figuresOf(l workflows.StepLine) figures {
	of := func(there bool, format string, figure float64) string {
		if !there {
			return workflows.NoData
		}
		return fmt.Sprintf(format, figure)
	}
	scored, trained := l.Trajectories > 0, l.Trained()
	return figures{
		reward: of(scored, "%.3f", l.Reward), success: of(scored, "%.1f%%", 100*l.Success),
		toolErrors: of(l.CalledTools(), "%.1f%%", 100*l.ToolErrorPositive),
		entropy:    of(trained && l.Entropy != nil, "%.3f", schema.OrZero(l.Entropy)),
		kl:         of(trained, "%.5f", l.KL),
		clip:       of(trained, "%.3f", l.ClipFraction),
		grad:       of(trained && l.GradNorm != nil, "%.2f", schema.OrZero(l.GradNorm)),
	}
}

// advantageWords are mean and standard deviation in columns, or dashes for a step that trained on nothing.
func advantageWords(a *schema.Advantages) string {
	if a == nil {
		return fmt.Sprintf("%8s %7s", "–", "–")
	}
	return fmt.Sprintf("%8.3f %7.3f", a.Mean, a.Std)
}

func criticWords(c schema.CriticFigures) string {
	words := fmt.Sprintf("critic: loss %.4f, clipped %.1f%%, value %.3f of return %.3f", c.Loss, 100*c.ClipFraction,
		c.Value, c.Return)
	if c.ExplainedVariance != nil {
		words += fmt.Sprintf(", explains %.1f%%", 100**c.ExplainedVariance)
	}
	return words
}
