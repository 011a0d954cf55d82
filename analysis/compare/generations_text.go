package compare

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ropewalk/ropewalk/internal/terminal"
)

// Write prints the differences as text.
func (d Generations) Write(w io.Writer) error {
	p := terminal.NewPrinter(w)
	line := p.Line
	line("run %s, step %d: generation %d → %d", d.Run, d.Step, d.Before, d.After)
	for _, s := range d.Borrowed {
		line("  %s", s.words())
	}
	r := d.Rewards
	line("\nrewards     %d of %d trajectories changed", r.Changed, r.Trajectories)
	line("  mean      %.4f → %.4f (%+.4f)", r.MeanBefore, r.MeanAfter, r.MeanAfter-r.MeanBefore)
	line("  success   %.1f%% → %.1f%%", 100*r.SuccessBefore, 100*r.SuccessAfter)
	if r.OnlyBefore+r.OnlyAfter > 0 {
		line("  %d trajectories are only in generation %d, %d only in generation %d", r.OnlyBefore, d.Before,
			r.OnlyAfter, d.After)
	}
	if r.Changed > 0 {
		if len(r.Histogram) > 1 {
			writeHistogram(line, r.Histogram)
		} else {
			line("  no reward is another, only verdicts")
		}
		line("  largest changes")
		for _, c := range r.Largest {
			line("    %s  %g (%s) → %g (%s)", c.Trajectory, c.Before, c.VerdictBefore, c.After, c.VerdictAfter)
		}
	}
	s := d.Selection
	line("\nselection   %d of %d trajectories changed in fate, count or weight", s.Changed, s.Trajectories)
	line("  kept      %d → %d", s.KeptBefore, s.KeptAfter)
	for _, f := range s.Fates {
		line("  %6d    %s → %s", f.N, f.Before, f.After)
	}
	a := d.Advantages
	line("\nadvantages  %d → %d rows, %d in both: %d changed, %d of another sign", a.RowsBefore, a.RowsAfter, a.Both,
		a.Changed, a.Flips)
	line("  mean      %+.4f → %+.4f", rounded(a.MeanBefore), rounded(a.MeanAfter))
	line("  std       %.4f → %.4f", a.StdBefore, a.StdAfter)
	line("  correlation of those in both  %s", a.correlationWords())
	return p.Close()
}

// rounded rounds a figure to four digits; a figure that rounds to zero has no sign.
func rounded(x float64) float64 {
	if math.Abs(x) < 0.5e-4 {
		return 0
	}
	return x
}

const barColumns = 40

func writeHistogram(line func(string, ...any), bins []Bin) {
	most := 1
	for _, b := range bins {
		most = max(most, b.N)
	}
	line("  change")
	for _, b := range bins {
		line("    %+7.3f … %+7.3f  %6d  %s", b.From, b.To, b.N, strings.Repeat("█", (b.N*barColumns+most-1)/most))
	}
}

func (b Borrowed) words() string {
	if b.From < 0 {
		return fmt.Sprintf("generation %d has no %s, nor has the step", b.Gen, b.Stage)
	}
	return fmt.Sprintf("generation %d has no %s of its own: that of generation %d, which the step has", b.Gen, b.Stage,
		b.From)
}

func (a Advantages) correlationWords() string {
	if a.Correlation == nil {
		return "none: one side does not vary"
	}
	return fmt.Sprintf("%.4f", *a.Correlation)
}
