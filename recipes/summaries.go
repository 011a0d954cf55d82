package recipes

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/tool/tools"
)

// SummaryTokens is the maximum of tokens of the summaries that the tool browse shows in the place of documents; 0 = it
// shows documents, or the recipe does not name it.
func (r *Recipe) SummaryTokens() int {
	if _, most := r.Environment.asksSummaries(); slices.Contains(r.Rollout.ToolNames(), tools.Browse.Name) {
		return most
	}
	return 0
}

// asksSummaries returns the environment, or the part of a mix, whose settings ask for summaries, and their tokens.
func (e Environment) asksSummaries() (name string, most int) {
	if declared(e.Name).Name == "" {
		return "", 0
	}
	for _, c := range e.configured() {
		if c.declaration.Summary == nil {
			continue
		}
		if n := c.declaration.Summary(c.settings); n > most {
			name, most = c.declaration.Name, n
		}
	}
	return name, most
}

// summariesFit checks that a recipe with summaries can have some.
func summariesFit(r *Recipe) string {
	name, most := r.Environment.asksSummaries()
	switch {
	case most == 0:
		return ""
	case !slices.Contains(r.Rollout.ToolNames(), tools.Browse.Name):
		return fmt.Sprintf("has %d summary_tokens of %s, and rollout.tools does not name browse, which shows summaries",
			most, name)
	case r.Policy.Checkpoint == "" && 2*most > r.Policy.MaxPositions:
		return fmt.Sprintf("has %d summary_tokens of %s, more than half of policy.max_positions %d: the model also "+
			"reads the question and the page", most, name, r.Policy.MaxPositions)
	}
	return ""
}
