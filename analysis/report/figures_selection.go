package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/rl/resample"
)

// keptOutcome is the outcome of kept trajectories in the answer to the question outcomes.
const keptOutcome = "kept"

var funnel = figure{
	id: "funnel", title: "From sampled to trained", asks: []string{"funnel", "outcomes"}, also: []string{"updates"},
	note: "Trajectories of all finished steps. The lower bars count dropped trajectories by reason.",
	draw: func(d data, f *Figure) error {
		a := d.answers["funnel"]
		if a.rows() == 0 || !known(a.column("sampled")) {
			f.Empty = noSteps
			return nil
		}
		sampled := a.number(0, "sampled")
		share := func(n float64) string { return fmt.Sprintf("(%s)", chart.Value(n/sampled, chart.Percent)) }
		bars := []chart.Bar{{Name: "sampled", Color: 1, Value: sampled}}
		if kept := a.number(0, "kept"); !math.IsNaN(kept) {
			trained := a.number(0, "trained")
			bars = append(bars, chart.Bar{Name: "kept", Color: 1, Value: kept, Note: share(kept)},
				chart.Bar{Name: "trained", Color: 1, Value: trained, Note: share(trained)})
		}
		for _, r := range dropped(d) {
			bars = append(bars, chart.Bar{Name: "– " + r.Name, Color: r.Color, Value: r.Value, Note: share(r.Value)})
		}
		if copies := a.number(0, "copies"); !math.IsNaN(copies) {
			f.Note += fmt.Sprintf(" Counted with their copies, the trained ones are %s.", plainNumber(copies))
		}
		if d.answers["updates"].rows() == 0 {
			f.Note += " " + noUpdates
		}
		f.SVG = chart.Bars(f.Title, bars)
		return nil
	},
}

// The colours of kept trajectories, and of reasons that the program does not know, which the last known one shares.
const keptColor, unknownColor = 1, 12

// reasonColor is the colour of an outcome. A reason has the same one in every figure of every report.
func reasonColor(outcome string) int {
	if outcome == keptOutcome {
		return keptColor
	}
	if i := slices.Index(resample.RowReasons, resample.Reason(outcome)); i >= 0 {
		return keptColor + 1 + i
	}
	return unknownColor
}

// dropped counts the dropped trajectories of all steps by reason, the most frequent first.
func dropped(d data) []chart.Bar {
	_, outcomes, values := d.answers["outcomes"].pivot("outcome", "trajectories", 0)
	var out []chart.Bar
	for _, name := range outcomes {
		if name != keptOutcome {
			out = append(out, chart.Bar{Name: name, Color: reasonColor(name), Value: sum(values[name])})
		}
	}
	slices.SortStableFunc(out, func(a, b chart.Bar) int { return cmp.Compare(b.Value, a.Value) })
	return out
}

var outcomes = figure{
	id: "outcomes", title: "Kept and dropped per step", asks: []string{"outcomes"}, empty: noSelection,
	note:  "Trajectories of each step, by whether they were kept or why they were dropped (selection.reason).",
	axes:  chart.Chart{YLabel: "trajectories"},
	split: &split{key: "outcome", value: "trajectories", color: reasonColor, stacked: true},
}

// judgedColors are the colours of a judge's verdicts.
var judgedColors = map[string]int{"match": 1, "mismatch": 4, "no verdict": 12}

var judged = figure{
	id: "judged", title: "A judge's verdicts", asks: []string{"judgements"}, optional: true,
	note: "Trajectories whose reward asked a judge, by its verdict. Those without a verdict are excluded and have no " +
		"reward. The others' rewards did not depend on the judge.",
	axes: chart.Chart{YLabel: "trajectories"},
	split: &split{key: "verdict", value: "trajectories", stacked: true,
		color: func(verdict string) int { return judgedColors[verdict] }},
	draw: func(d data, f *Figure) error {
		f.Note += fmt.Sprintf(" The judge: %s.", strings.Join(d.answers["judgements"].kinds("model"), ", "))
		return nil
	},
}

var zeroAdvantage = figure{
	id: "zero-advantage", title: "Groups without an advantage", asks: []string{"group_rewards"}, empty: noSteps,
	note: "Share of a step's groups whose rewards have a variance below 1e-06: all their advantages are 0, so " +
		"nothing is learned from them. Many groups that are always solved mean that the tasks have become too easy; " +
		"many that are never solved mean that they are too hard.",
	axes:  shares("groups"),
	stack: []line{solid("never solved", 4, "never"), solid("always solved", 3, "always")},
	draw: func(d data, f *Figure) error {
		groups := d.answers["group_rewards"].column("groups")
		least, most := slices.Min(groups), slices.Max(groups)
		if least == most {
			f.Note += fmt.Sprintf(" A step has %.0f groups.", least)
			return nil
		}
		f.Note += fmt.Sprintf(" Steps have %.0f to %.0f groups.", least, most)
		return nil
	},
}

var groupSpread = figure{
	id: "group-rewards", title: "Rewards inside groups", asks: []string{"group_rewards"}, empty: noSteps,
	note: "Means over a step's groups. Advantages come from the deviation within a group, so resampling should " +
		"raise it among the kept trajectories. The maximum shows what the policy can do at best, the mean what it " +
		"usually does.",
	axes: chart.Chart{YLabel: "reward"},
	lines: []line{solid("mean", 1, "mean"), solid("maximum", 3, "most"), dashed("deviation", 2, "deviation"),
		dashed("deviation among kept", 5, "kept_deviation")},
}

var penalties = figure{
	id: "penalties", title: "Penalties of resample-on-correct", asks: []string{"qualities"}, empty: noSteps,
	note: "Mean penalty per trajectory for failed tool calls and for its format, over all sampled trajectories and " +
		"over the kept ones. Where resample-on-correct works, the kept ones have lower penalties.",
	axes: amounts("penalty"),
	lines: []line{solid("errors, all", 2, "errors"), dashed("errors, kept", 2, "kept_errors"),
		solid("format, all", 6, "format"), dashed("format, kept", 6, "kept_format")},
}

var answerCounts = figure{
	id: "answer-counts", title: "Answers per trajectory", asks: []string{"qualities"}, empty: noSteps,
	note: "A trajectory without an answer ran out of turns or tokens; one with several answers hedges.",
	axes: shares("trajectories"),
	stack: []line{solid("one", 1, "one_answer"), solid("none", 4, "no_answer"),
		solid("several", 2, "several_answers")},
}

var vspoDraws = figure{
	id: "value-scores", title: "What VSPO sampled", asks: []string{"value_scores", "value_copies"},
	empty: "No group has a value score: the recipe does not sample by value.",
	note: "Share of a step's groups that were replaced by copies of groups with a higher value score, and the mean " +
		"value score V. The table counts groups by the number of their copies in the batch; groups with 0 copies " +
		"were dropped.",
	axes:  amounts("replaced; V"),
	lines: []line{solid("replaced", 2, "replaced"), solid("mean value score", 1, "score")},
	draw:  folded("value_copies", "groups by their copies"),
}

// folded writes a question's answer out, behind a line that a reader opens.
func folded(question, words string) func(d data, f *Figure) error {
	return func(d data, f *Figure) error {
		f.Table = d.answers[question].table(nil)
		f.Table.Folded = words
		return nil
	}
}

// noBuffer is why figures of the replay buffer are empty.
const noBuffer = "The recipe has no replay buffer."

var replayBuffer = figure{
	id: "buffer", title: "The replay buffer", asks: []string{"buffer"}, empty: noBuffer,
	note: "Rows in the buffer after each step (trajectories, or turns in layout turns), and those whose " +
		"reward is above P50, the median of the groups' latest mean rewards: only these would be trained on again. " +
		"If only a few are, the policy has outgrown the buffer.",
	axes:  amounts("rows"),
	lines: []line{solid("in the buffer", 1, "size"), solid("above P50", 3, "accepted")},
}

var replayBufferWorth = figure{
	id: "buffer-worth", title: "What the buffer is worth", asks: []string{"buffer", "buffer_ages"}, empty: noBuffer,
	note: "P50, and the mean recalibrated advantage Ã = R − P50 of the rows above it. The table counts the rows in " +
		"the buffer after the last step by age: the older a row, the further the policy has moved since.",
	axes:  chart.Chart{YLabel: "reward"},
	lines: []line{solid("P50", 1, "p50"), solid("mean Ã", 3, "gain")},
	draw: func(d data, f *Figure) error {
		if a := d.answers["buffer_ages"]; a.rows() > 0 {
			f.Table = a.table(nil)
		}
		return nil
	},
}
