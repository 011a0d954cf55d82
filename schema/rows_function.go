package schema

// FunctionScoreRow is what a user's reward function said of one trajectory (table function_scores), where the recipe's
// reward is such a function. Trajectories that were excluded before have no row.
type FunctionScoreRow struct {
	GroupID      string   `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string   `parquet:"trajectory_id" doc:"the trajectory that the function was called with"`
	Function     string   `parquet:"function,dict" doc:"the function, as package:name"`
	Score        *float64 `parquet:"score,optional,split" doc:"the function's result; null if excluded"`
	Success      *bool    `parquet:"success,optional" doc:"whether the function says that the task was solved; null if it does not say, or if excluded"`
	Excluded     *string  `parquet:"excluded,optional" doc:"why there is no score, in one line; null if there is one"`
}

// Validate implements Row.
func (r FunctionScoreRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.present("function", r.Function)
	c.line("excluded", r.Excluded)
	switch {
	case r.Excluded != nil && (r.Score != nil || r.Success != nil):
		c.fail("score", "must be null if the trajectory is excluded")
	case r.Excluded == nil && r.Score == nil:
		c.fail("score", "must not be null if the trajectory is not excluded")
	case r.Score != nil:
		c.finite("score", *r.Score)
	}
	return c.err
}

// Position implements Row.
func (r FunctionScoreRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }
