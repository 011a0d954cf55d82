package advantage

import "github.com/ropewalk/ropewalk/rl/choice"

// RLOO (Kool et al. 2019; Ahmadian et al. 2024): a row's score minus the mean score of the other rows
// of its group,
//
//	A_i = R_i − (Σ_{j≠i} R_j)/(n−1) = n/(n−1)·(R_i − μ)
//
// Departures: none for n ≥ 2. A group of one has no other rows. Released code keeps the raw score in
// its loop form and gives 0 in its vectorised form; SingleGroup offers both.

var rloo = Declaration{
	Choice: choice.Choice{
		Name: "rloo", Doc: "reward minus the mean of the others in the group", Source: "RLOO (Ahmadian et al. 2024)",
		Settings: rlooSettings{SingleGroup: SingleRaw, Stats: StatsTurnRows},
		Rules: []choice.Rule{{
			Param: "stats", Reads: []string{"name"}, Doc: "turn_rows with rloo",
			Fault: func(p choice.Params) string {
				if p["stats"] != string(StatsPerTrajectory) {
					return ""
				}
				return "per_trajectory chooses the rows whose mean and deviation a row is compared with, " +
					"and rloo (advantage.name) compares it with the other rows"
			},
		}},
	},
	GroupMeans: true,
}

// rlooSettings are the parameters of RLOO in a recipe.
type rlooSettings struct {
	SingleGroup    SingleGroup `json:"single_group"`
	Stats          Stats       `json:"stats"` // turn_rows alone makes sense
	InvalidPenalty float64     `json:"invalid_penalty"`
}

// Estimate is RLOO over rows of either layout.
func (r rlooSettings) Estimate(b Batch) (out Estimates, err error) {
	out.Rows, err = RLOO{SingleGroup: r.SingleGroup}.Estimate(b.Scores(), b.Groups())
	return out, err
}

// RLOO is the leave-one-out estimator.
type RLOO struct {
	SingleGroup SingleGroup `enum:"raw|zero"` // SingleRaw when empty
}

// Validate reports the first bad field.
func (r RLOO) Validate() error { return choice.Check("", r) }

// Estimate returns the advantage of each row from its score and the name of its group.
func (r RLOO) Estimate(scores []float64, groups []string) ([]float64, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	var scratch []float64
	return againstOthers(scores, groups, r.SingleGroup, func(out []float64, rows []int) {
		scratch = gather(scratch, scores, rows)
		mean, _ := sortedMoments(scratch)
		n := float64(len(rows))
		for _, i := range rows {
			out[i] = n / (n - 1) * (scores[i] - mean)
		}
	})
}
