package report

import (
	"math"

	"github.com/ropewalk/ropewalk/analysis/report/chart"
)

// replaysID names the section of replays.
const replaysID = "replays"

// replays sets the generations of replayed steps side by side.
func (d data) replays() Section {
	rewards := d.figure("replayed-rewards", "Rewards by generation", "replayed_rewards")
	selection := d.figure("replayed-selection", "Selection by generation", "replayed_selection")
	rewards.Table = d.table("replayed_rewards", map[string]chart.Unit{"success": chart.Percent})
	selection.Table = d.table("replayed_selection", nil)
	for _, f := range []*Figure{&rewards, &selection} {
		f.Note = "Steps of which more than one generation is committed; the other figures show what the heads name."
		if len(f.Table.Rows) == 0 {
			f.Table, f.Empty = nil, "No step was replayed in this stage."
		}
	}
	return Section{replaysID, "Replays", []Figure{rewards, selection}}
}

// table writes an answer out, its numbers in units and everything else as text.
func (d data) table(name string, units map[string]chart.Unit) *Table {
	a := d.answers[name]
	t := &Table{Columns: a.Columns}
	for i := range a.rows() {
		row := make([]string, len(a.Columns))
		for j, column := range a.Columns {
			row[j] = a.text(i, column)
			if n := a.number(i, column); !math.IsNaN(n) {
				row[j] = chart.Value(n, units[column])
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
