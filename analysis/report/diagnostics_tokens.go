package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/diagnose"
)

// Diagnoses by token read whole steps; these are so many, the last one first, as long as their tokens
// together stay below the bound.
const (
	tokenSteps     = 5
	mostTokensRead = 2_000_000
)

// stepTokens are the tokens of one step.
type stepTokens struct {
	step int
	rows []analysis.TokenRow
}

// readTokens reads the tokens of a few steps, in their order.
func readTokens(ctx context.Context, record *analysis.Record, run string) (out []stepTokens, err error) {
	v, err := record.Visible(ctx, run)
	if errors.Is(err, analysis.ErrNoRun) {
		return nil, nil // it is in the catalogue and has committed nothing yet
	}
	if err != nil {
		return nil, err
	}
	read := 0
	for _, step := range spread(v.Steps(), tokenSteps) {
		if read >= mostTokensRead {
			break
		}
		rows, err := v.TokenRows(ctx, step)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			read += len(r.Mask)
		}
		out = append(out, stepTokens{step, rows})
	}
	slices.SortFunc(out, func(a, b stepTokens) int { return a.step - b.step })
	return out, nil
}

// spread chooses at most n steps at equal distances, the last first, then the first, then between.
func spread(steps []int, n int) []int {
	if len(steps) <= n {
		out := slices.Clone(steps)
		slices.Reverse(out)
		return out
	}
	out := []int{steps[len(steps)-1]}
	for i := range n - 1 {
		out = append(out, steps[i*(len(steps)-1)/(n-1)])
	}
	return out
}

// rowsOf are the rows of a step that have what take asks for.
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

// tokenDiagnostics are of single tokens. No question gives them: they are read from the shards.
func (d data) tokenDiagnostics() []Figure {
	return []Figure{d.entropySums(), d.hesitation(), d.modelsApart(), d.eightGroups(), d.anchorGroups()}
}

// sampled says of which steps a figure is.
func (d data) sampled() string {
	return fmt.Sprintf(" Of %d steps, read token by token.", len(d.tokens))
}

// noEntropies is why figures of entropies are empty.
const noEntropies = "No entropies were recorded: no policy of this run wrote the trajectories, or no step is done."

func withEntropies(r analysis.TokenRow) (diagnose.Row, bool) {
	return diagnose.Row{Entropy: wide(r.Entropies)}, r.Entropies != nil
}

func (d data) entropySums() Figure {
	f := Figure{ID: "entropy-sums", Title: "Entropy by token and by trajectory"}
	f.Table = &Table{Columns: []string{"step", "trajectories", "tokens", "nats per token", "nats per trajectory"}}
	line := chart.Series{Name: "nats per trajectory", Color: 5}
	for _, s := range d.tokens {
		var e diagnose.Entropy
		if err := e.Add(rowsOf(s.rows, withEntropies)...); err != nil {
			return f.refused(err)
		}
		r := e.Report(0)
		if r.Rows == 0 {
			continue
		}
		f.Table.Rows = append(f.Table.Rows, []string{whole(s.step), whole(r.Rows), whole(r.Tokens), plainNumber(r.TokenMean), plainNumber(r.SeqMeanTokenSum)})
		line.X, line.Y = append(line.X, float64(s.step)), append(line.Y, r.SeqMeanTokenSum)
	}
	if len(line.X) == 0 {
		f.Table, f.Empty = nil, noEntropies
		return f
	}
	f.Note = "Of all that was sampled, by the policy that wrote it. The mean by token falls as the policy grows sure of words; the sum over a trajectory falls as it explores fewer ways through a task. A collapse of both early on ends learning." + d.sampled()
	f.draw(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "nats per trajectory", FromZero: true, Lines: []chart.Series{line}})
	return f
}

func (d data) hesitation() Figure {
	f := Figure{ID: "hesitation", Title: "Where the policy hesitates"}
	reasoning := chart.Series{Name: "in its own reasoning", Color: 1}
	reflection := chart.Series{Name: "after a tool's answer", Color: 2}
	f.Table = &Table{Columns: []string{"step", "threshold in nats", "of the top: reasoning", "after tools"}}
	for _, s := range d.tokens {
		var h diagnose.Hesitation
		if err := h.Add(rowsOf(s.rows, withEntropies)...); err != nil {
			return f.refused(err)
		}
		r := h.Report()
		if r.Tokens == 0 {
			continue
		}
		x := float64(s.step)
		reasoning.X, reasoning.Y = append(reasoning.X, x), append(reasoning.Y, r.ReasoningDensity)
		reflection.X, reflection.Y = append(reflection.X, x), append(reflection.Y, r.ReflectionDensity)
		f.Table.Rows = append(f.Table.Rows, []string{whole(s.step), plainNumber(r.Threshold), percent(r.Forking), percent(r.Reflection)})
	}
	if len(reasoning.X) == 0 {
		f.Table, f.Empty = nil, noEntropies
		return f
	}
	f.Note = fmt.Sprintf("Of the tokens in each place, the share among the step's top %s by entropy; the first %d tokens after a tool's answer are one place, all others the other. Where the second lies above the first, the policy weighs what the tool said rather than its own words.", percent(diagnose.DefaultTop), diagnose.DefaultWindow) + d.sampled()
	f.draw(chart.Chart{Title: f.Title, XLabel: "step", YLabel: "tokens of high entropy", Unit: chart.Percent, FromZero: true, Lines: []chart.Series{reasoning, reflection}})
	return f
}

// noOutputs is why figures of other models' outputs are empty.
const noOutputs = "The recipe has no stage forward, or it computed neither log-probabilities once more nor a reference's."

func (d data) modelsApart() Figure {
	f := Figure{ID: "models", Title: "The policy before its update, beside sampler and reference"}
	f.Table = &Table{Columns: []string{"step", "k1 from the reference", "k3", "sampler − trainer", "their ratios"}}
	for _, s := range d.tokens {
		rows := rowsOf(s.rows, func(r analysis.TokenRow) (diagnose.Row, bool) {
			row := diagnose.Row{LogProbs: wide(r.OldLogProbs), Old: wide(r.LogProbs), Reference: wide(r.ReferenceLogProbs), Advantages: make([]float64, len(r.Mask))}
			if row.LogProbs == nil {
				row.LogProbs, row.Old = row.Old, nil // the sampler's word is all there is of the policy
			}
			return row, row.LogProbs != nil && (row.Old != nil || row.Reference != nil)
		})
		var kl diagnose.KL
		if err := kl.Add(rows...); err != nil {
			return f.refused(err)
		}
		ratios, err := diagnose.NewRatios(diagnose.DefaultRatioBounds)
		if err != nil {
			return f.refused(err)
		}
		outside := "–"
		both := slices.DeleteFunc(slices.Clone(rows), func(r diagnose.Row) bool { return r.Old == nil })
		if err := ratios.AddTokens(both...); err != nil {
			return f.refused(err)
		}
		if len(both) > 0 {
			spread := ratios.Report().Ratio
			outside = fmt.Sprintf("%s to %s", plainNumber(spread.Min), plainNumber(spread.Max))
		}
		r := kl.Report()
		if r.ReferenceTokens+r.OldTokens == 0 {
			continue
		}
		f.Table.Rows = append(f.Table.Rows, []string{whole(s.step), meanOver(r.K1, r.ReferenceTokens), meanOver(r.K3, r.ReferenceTokens), meanOver(r.OffPolicy, r.OldTokens), outside})
	}
	if len(f.Table.Rows) == 0 {
		f.Table, f.Empty = nil, noOutputs
		return f
	}
	f.Note = "Nats per token: the estimates k1 and k3 of KL(policy ‖ reference), and the mean log-probability that the sampler noted less what the trainer makes of the same token, with the least and greatest ratio of the two. The last should be rounding alone: where it is not, sampler and trainer are not the same policy and every importance ratio starts out wrong." + d.sampled()
	return f
}

// meanOver is a mean over n tokens; a dash over none.
func meanOver(mean float64, n int) string {
	if n == 0 {
		return "–"
	}
	return plainNumber(mean)
}

func (d data) eightGroups() Figure {
	f := Figure{ID: "eight-groups", Title: "Where the divergence comes from"}
	for i := len(d.tokens) - 1; i >= 0; i-- { // the latest that has all it takes
		s := d.tokens[i]
		samples, err := diagnose.Samples(rowsOf(s.rows, func(r analysis.TokenRow) (diagnose.Row, bool) {
			row := diagnose.Row{
				LogProbs: wide(r.OldLogProbs), Old: wide(r.LogProbs), Reference: wide(r.ReferenceLogProbs), Advantages: wide(r.Advantages), Entropy: wide(r.Entropies),
			}
			return row, row.LogProbs != nil && row.Old != nil && row.Reference != nil && row.Advantages != nil && row.Entropy != nil
		}))
		if err != nil {
			return f.refused(err)
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
			return f.refused(err)
		}
		f.Table = &Table{Columns: []string{"group", "trajectories", "mean ratio", "share of the KL"}}
		var bars []chart.Bar
		for _, g := range groups.Report() {
			color := 4
			if g.Positive {
				color = 3
			}
			f.Table.Rows = append(f.Table.Rows, []string{g.Name(), whole(g.Count), plainNumber(g.Ratio), percent(g.KLShare)})
			bars = append(bars, chart.Bar{Name: g.Name(), Color: color, Value: float64(g.Count), Note: "with " + percent(g.KLShare) + " of the KL"})
		}
		f.SVG = chart.Bars(f.Title, bars)
		f.Note = fmt.Sprintf("The trajectories of step %d that were learnt from, by the sign of their advantage, whether the trainer finds them likelier than the sampler did (IS), and whether their mean entropy is above the step's median of %s nats (H+); with each group's share of the divergence from the reference before the update. Runs that collapse show a growing share in A−|IS<=1.", s.step, plainNumber(threshold))
		return f
	}
	f.Empty = "It takes log-probabilities computed once more, a reference's, entropies and advantages of the same trajectories (loss.old_log_probs: recompute and a KL term)."
	return f
}
