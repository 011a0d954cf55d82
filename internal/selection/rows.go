package selection

import (
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// Rows returns what the chain selects from: every sampled trajectory of the step, with or without a reward.
func Rows(recipe *recipes.Recipe, rewards []schema.RewardRow, excluded []schema.SelectionRow) ([]resample.Row, error) {
	if err := checkExcluded(rewards, excluded); err != nil {
		return nil, err
	}
	rows := make([]resample.Row, 0, len(rewards)+len(excluded))
	for _, r := range rewards {
		rows = append(rows, resample.Row{
			GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
			ToolCalls: int(r.ToolCalls), ToolErrors: int(r.ToolErrors), AnswerTags: int(r.AnswerTags),
			Turns: int(r.Turns),
		})
	}
	for _, e := range excluded {
		rows = append(rows, resample.Row{GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Excluded: true})
	}
	return rows, setRounds(rows, recipe)
}

// setRounds sets the round of dynamic sampling of every row: each round has the same number of groups.
func setRounds(rows []resample.Row, recipe *recipes.Recipe) error {
	if recipe.Resample.Dynamic() == nil || recipe.Rollout.Prompts == 0 {
		return nil
	}
	for i := range rows {
		_, group, err := schema.ParseGroupID(rows[i].GroupID)
		if err != nil {
			return err
		}
		rows[i].Round = group / recipe.Rollout.Prompts
	}
	return nil
}

// Selected is the selection of a step.
type Selected struct {
	// Rows holds a row for each sampled trajectory.
	Rows []schema.SelectionRow
	// Kept and Dropped count trajectories; KeptGroups and DroppedGroups count groups.
	Kept, Dropped, KeptGroups, DroppedGroups int
	// Reasons counts the trajectories that are not kept, by reason; schema.ReasonExcluded counts the excluded ones.
	Reasons map[string]int
	// Masked counts the kept trajectories whose tokens are masked out of the loss, by reason; nil if there are none.
	Masked map[string]int
}

// Select applies the recipe's chain to the rows of a step. excluded are the rows that Rows was given.
func Select(recipe *recipes.Recipe, step int, rows []resample.Row, excluded []schema.SelectionRow) (Selected, error) {
	s, err := Chain(recipe, step).Select(rows)
	if err != nil {
		return Selected{}, err
	}
	out := Selected{
		Rows: selectionRows(s, excluded), Kept: s.KeptRows, Dropped: len(s.Rows) - s.KeptRows,
		KeptGroups: s.KeptGroups, DroppedGroups: s.Groups - s.KeptGroups, Reasons: map[string]int{},
	}
	for reason, n := range s.DroppedBy {
		out.Reasons[string(reason)] = n
	}
	for reason, n := range s.MaskedBy {
		if out.Masked == nil {
			out.Masked = map[string]int{}
		}
		out.Masked[string(reason)] = n
	}
	return out, nil
}

func selectionRows(s resample.Selection, excluded []schema.SelectionRow) []schema.SelectionRow {
	why := make(map[string]*string, len(excluded))
	for _, e := range excluded {
		why[e.TrajectoryID] = e.Excluded
	}
	rows := make([]schema.SelectionRow, len(s.Rows))
	for i, r := range s.Rows {
		rows[i] = schema.SelectionRow{
			GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Kept: r.Kept, Count: int32(r.Count), Weight: r.Weight,
			Reason: string(r.Reason), GroupMean: r.GroupMean, GroupVariance: r.GroupVariance, ValueScore: r.ValueScore,
			Excluded: why[r.TrajectoryID],
		}
		if r.Masked {
			rows[i].Reason, rows[i].Masked = "", new(string(r.Reason))
		}
	}
	return rows
}

// Informative counts the groups whose rewards are not all equal.
func Informative(rewards []schema.RewardRow) int {
	groups := map[string][]float64{}
	for _, r := range rewards {
		groups[r.GroupID] = append(groups[r.GroupID], r.Reward)
	}
	n := 0
	for _, group := range groups {
		if resample.Informative(group) {
			n++
		}
	}
	return n
}
