package report

import "github.com/ropewalk/ropewalk/analysis/report/chart"

// replaysID names the section of replays.
const replaysID = "replays"

// Texts of the section of replays.
const (
	replayNote = "Steps with more than one committed generation; all other figures show the generations that the " +
		"heads name."
	noReplays = "No step has more than one generation of this stage."
)

// replayedRewards compares the rewards of replayed steps by generation.
var replayedRewards = figure{
	id: "replayed-rewards", title: "Rewards by generation", asks: []string{"replayed_rewards"}, empty: noReplays,
	note: replayNote,
	draw: table("replayed_rewards", map[string]chart.Unit{"success": chart.Percent}),
}

// replayedSelection compares the selections of replayed steps by generation.
var replayedSelection = figure{
	id: "replayed-selection", title: "Selection by generation", asks: []string{"replayed_selection"}, empty: noReplays,
	note: replayNote,
	draw: table("replayed_selection", nil),
}
