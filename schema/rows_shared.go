package schema

// Tables whose rows are those of another table share its checks and its order.

// Validate implements Row.
func (r ImportedRow) Validate() error { return TrajectoryRow(r).Validate() }

func (r ImportedRow) position() position { return TrajectoryRow(r).position() }

// Validate implements Row.
func (r EvaluationPromptRow) Validate() error { return PromptRow(r).Validate() }

func (r EvaluationPromptRow) position() position { return PromptRow(r).position() }

// Validate implements Row.
func (r EvaluationTurnRow) Validate() error { return TurnRow(r).Validate() }

func (r EvaluationTurnRow) position() position { return TurnRow(r).position() }

// Validate implements Row.
func (r EvaluationCallRow) Validate() error { return ToolCallRow(r).Validate() }

func (r EvaluationCallRow) position() position { return ToolCallRow(r).position() }

// Validate implements Row.
func (r EvaluationTransitionRow) Validate() error { return TransitionRow(r).Validate() }

func (r EvaluationTransitionRow) position() position { return TransitionRow(r).position() }

// Validate implements Row.
func (r EvaluationTrajectoryRow) Validate() error { return TrajectoryRow(r).Validate() }

func (r EvaluationTrajectoryRow) position() position { return TrajectoryRow(r).position() }
