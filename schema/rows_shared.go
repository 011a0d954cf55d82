package schema

// Tables whose rows are those of another table share its checks and its order.

// Validate implements Row.
func (r ImportedRow) Validate() error { return TrajectoryRow(r).Validate() }

// Position implements Row.
func (r ImportedRow) Position() Position { return TrajectoryRow(r).Position() }

// Validate implements Row.
func (r EvaluationPromptRow) Validate() error { return PromptRow(r).Validate() }

// Position implements Row.
func (r EvaluationPromptRow) Position() Position { return PromptRow(r).Position() }

// Validate implements Row.
func (r EvaluationTurnRow) Validate() error { return TurnRow(r).Validate() }

// Position implements Row.
func (r EvaluationTurnRow) Position() Position { return TurnRow(r).Position() }

// Validate implements Row.
func (r EvaluationCallRow) Validate() error { return ToolCallRow(r).Validate() }

// Position implements Row.
func (r EvaluationCallRow) Position() Position { return ToolCallRow(r).Position() }

// Validate implements Row.
func (r EvaluationTransitionRow) Validate() error { return TransitionRow(r).Validate() }

// Position implements Row.
func (r EvaluationTransitionRow) Position() Position { return TransitionRow(r).Position() }

// Validate implements Row.
func (r EvaluationTrajectoryRow) Validate() error { return TrajectoryRow(r).Validate() }

// Position implements Row.
func (r EvaluationTrajectoryRow) Position() Position { return TrajectoryRow(r).Position() }
