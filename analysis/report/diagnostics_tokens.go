package report

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// rowsOf converts the rows of a step that take accepts.
func rowsOf(rows []analysis.TokenRow, take func(analysis.TokenRow) (diagnose.Row, bool)) []diagnose.Row {
	var out []diagnose.Row
	for _, r := range rows {
		if row, ok := take(r); ok {
			row.Mask = r.Mask
			out = append(out, row)
		}
	}
	return out
}

func wide(list []float32) []float64 {
	if list == nil {
		return nil
	}
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = float64(x)
	}
	return out
}

// sampled says how many steps a figure is computed from.
func sampled(d data) string {
	return fmt.Sprintf(" Computed from the tokens of %d steps.", len(d.tokens))
}

// noEntropies is why figures of entropies are empty.
const noEntropies = "No entropies were recorded: the trajectories were imported, or no step is done."

func withEntropies(r analysis.TokenRow) (diagnose.Row, bool) {
	return diagnose.Row{Entropy: wide(r.Entropies)}, r.Entropies != nil
}

var entropySums = figure{
	id: "entropy-sums", title: "Entropy of a whole trajectory",
	note: "Entropy of the sampling policy over everything it sampled. The mean per token falls as the policy " +
		"becomes certain of its words; the sum over a trajectory falls as it explores fewer ways to solve a task. " +
		"If both collapse early, learning stops.",
	draw: func(d data, f *Figure) error {
		f.Table = &Table{Columns: []string{"step", "trajectories", "tokens", "nats per token", "nats per trajectory"}}
		line := chart.Series{Name: "nats per trajectory", Color: 5}
		for _, s := range d.tokens {
			var e diagnose.Entropy
			if err := e.Add(rowsOf(s.rows, withEntropies)...); err != nil {
				return err
			}
			r := e.Report()
			if r.Rows == 0 {
				continue
			}
			f.Table.Rows = append(f.Table.Rows, []string{whole(s.step), whole(r.Rows), whole(r.Tokens),
				plainNumber(r.TokenMean), plainNumber(r.SeqMeanTokenSum)})
			line.X, line.Y = append(line.X, float64(s.step)), append(line.Y, r.SeqMeanTokenSum)
		}
		if len(line.X) == 0 {
			f.Table, f.Empty = nil, noEntropies
			return nil
		}
		f.Note += sampled(d)
		f.draw(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "nats per trajectory", FromZero: true,
			Lines: []chart.Series{line}})
		return nil
	},
}

var hesitation = figure{
	id: "hesitation", title: "Where the policy hesitates",
	draw: func(d data, f *Figure) error {
		reasoning := chart.Series{Name: "in its own reasoning", Color: 1}
		reflection := chart.Series{Name: "after a tool's answer", Color: 2}
		f.Table = &Table{Columns: []string{"step", "threshold in nats", "share in reasoning", "share after tools"}}
		for _, s := range d.tokens {
			var h diagnose.Hesitation
			if err := h.Add(rowsOf(s.rows, withEntropies)...); err != nil {
				return err
			}
			r := h.Report()
			if r.Tokens == 0 {
				continue
			}
			x := float64(s.step)
			reasoning.X, reasoning.Y = append(reasoning.X, x), append(reasoning.Y, r.ReasoningDensity)
			reflection.X, reflection.Y = append(reflection.X, x), append(reflection.Y, r.ReflectionDensity)
			f.Table.Rows = append(f.Table.Rows, []string{whole(s.step), plainNumber(r.Threshold), percent(r.Forking),
				percent(r.Reflection)})
		}
		if len(reasoning.X) == 0 {
			f.Table, f.Empty = nil, noEntropies
			return nil
		}
		f.Note = fmt.Sprintf("Share of tokens that are among the step's top %s by entropy: for the first %d tokens "+
			"after a tool's answer, and for all other tokens. Where the share after tools is higher, the policy is "+
			"less certain about the tool's answer than about its own reasoning.", percent(diagnose.DefaultTop),
			diagnose.DefaultWindow) + sampled(d)
		f.draw(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "tokens of high entropy", Unit: chart.Percent,
			FromZero: true, Lines: []chart.Series{reasoning, reflection}})
		return nil
	},
}

// noOutputs is why figures of other models' outputs are empty.
const noOutputs = "The recipe has no stage logprobs, or the stage computed neither old nor reference log-probabilities."

var modelsApart = figure{
	id: "models", title: "The policy before its update, compared with sampler and reference",
	note: "In nats per token: the estimates k1 and k3 of KL(policy ‖ reference), and the mean difference between " +
		"the log-probabilities of sampler and trainer for the same tokens, with the smallest and largest ratio of " +
		"the two. The difference should be rounding only; otherwise sampler and trainer are different policies, and " +
		"every importance ratio is off from the start. Apart: its absolute value, on average, at the 99th percentile " +
		"and at most, and the share of tokens whose probabilities differ by more than 1%.",
	draw: func(d data, f *Figure) error {
		f.Table = &Table{Columns: []string{"step", "k1 from the reference", "k3", "sampler − trainer", "ratios",
			"apart", "99%", "most", "> 1%"}}
		for _, s := range d.tokens {
			rows := rowsOf(s.rows, func(r analysis.TokenRow) (diagnose.Row, bool) {
				row := diagnose.Row{LogProbs: wide(r.OldLogProbs), Old: wide(r.LogProbs),
					Reference: wide(r.ReferenceLogProbs), Advantages: make([]float64, len(r.Mask))}
				if row.LogProbs == nil {
					row.LogProbs, row.Old = row.Old, nil // only the sampler's log-probabilities are known
				}
				return row, row.LogProbs != nil && (row.Old != nil || row.Reference != nil)
			})
			var kl diagnose.KL
			if err := kl.Add(rows...); err != nil {
				return err
			}
			differences := []string{"–", "–", "–", "–", "–"}
			both := slices.DeleteFunc(slices.Clone(rows), func(r diagnose.Row) bool { return r.Old == nil })
			if len(both) > 0 {
				var m diagnose.Mismatch
				if err := m.Add(both...); err != nil {
					return err
				}
				r := m.Report()
				differences = []string{plainNumber(r.LeastRatio) + " to " + plainNumber(r.GreatestRatio),
					plainNumber(r.Mean), plainNumber(r.P99), plainNumber(r.Max), percent(r.Beyond)}
			}
			r := kl.Report()
			if r.ReferenceTokens+r.OldTokens == 0 {
				continue
			}
			f.Table.Rows = append(f.Table.Rows, append([]string{whole(s.step), meanOver(r.K1, r.ReferenceTokens),
				meanOver(r.K3, r.ReferenceTokens), meanOver(r.OffPolicy, r.OldTokens)}, differences...))
		}
		if len(f.Table.Rows) == 0 {
			f.Table, f.Empty = nil, noOutputs
			return nil
		}
		f.Note += sampled(d)
		return nil
	},
}

// meanOver is a mean over n tokens; a dash over none.
func meanOver(mean float64, n int) string {
	if n == 0 {
		return "–"
	}
	return plainNumber(mean)
}

var eightGroups = figure{
	id: "eight-groups", title: "Where the divergence comes from",
	draw: func(d data, f *Figure) error {
		for i := len(d.tokens) - 1; i >= 0; i-- { // the latest step that has all the data
			s := d.tokens[i]
			samples, err := diagnose.Samples(rowsOf(s.rows, func(r analysis.TokenRow) (diagnose.Row, bool) {
				row := diagnose.Row{
					LogProbs: wide(r.OldLogProbs), Old: wide(r.LogProbs), Reference: wide(r.ReferenceLogProbs),
					Advantages: wide(r.Advantages), Entropy: wide(r.Entropies),
				}
				return row, row.LogProbs != nil && row.Old != nil && row.Reference != nil && row.Advantages != nil &&
					row.Entropy != nil
			}))
			if err != nil {
				return err
			}
			if len(samples) == 0 {
				continue
			}
			threshold := diagnose.MedianEntropy(samples)
			groups, err := diagnose.NewEightGroups(threshold)
			if err == nil {
				err = groups.Add(samples...)
			}
			if err != nil {
				return err
			}
			f.Table = &Table{Columns: []string{"group", "trajectories", "mean ratio", "share of the KL"}}
			var bars []chart.Bar
			for _, g := range groups.Report() {
				color := 4
				if g.Positive {
					color = 3
				}
				f.Table.Rows = append(f.Table.Rows, []string{g.Name(), whole(g.Count), plainNumber(g.Ratio),
					percent(g.KLShare)})
				bars = append(bars, chart.Bar{Name: g.Name(), Color: color, Value: float64(g.Count), Note: "with " +
					percent(g.KLShare) + " of the KL"})
			}
			f.SVG = chart.Bars(f.Title, bars)
			f.Note = fmt.Sprintf("The trained trajectories of step %d, grouped by the sign of their advantage (A), "+
				"by whether the trainer gives them a higher probability than the sampler (IS > 1), and by whether "+
				"their mean entropy is above the step's median of %s nats (H+), with each group's share of the "+
				"divergence from the reference before the update. In runs that collapse, the share of A−|IS<=1 grows.",
				s.step, plainNumber(threshold))
			return nil
		}
		f.Empty = "It needs recomputed and reference log-probabilities, entropies and advantages of the same " +
			"trajectories (loss.old_log_probs: recompute, and a KL term)."
		return nil
	},
}
