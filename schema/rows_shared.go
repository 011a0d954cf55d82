package schema

// Tables whose rows are those of another table share its checks and its order.

// Table implements Row.
func (ImportedRow) Table() Table { return Imported }

// Validate implements Row.
func (r ImportedRow) Validate() error { return TrajectoryRow(r).Validate() }

func (r ImportedRow) position() position { return TrajectoryRow(r).position() }

// Table implements Row.
func (EvaluationPromptRow) Table() Table { return EvaluationPrompts }

// Validate implements Row.
func (r EvaluationPromptRow) Validate() error { return PromptRow(r).Validate() }

func (r EvaluationPromptRow) position() position { return PromptRow(r).position() }

// Table implements Row.
func (EvaluationTurnRow) Table() Table { return EvaluationTurns }

// Validate implements Row.
func (r EvaluationTurnRow) Validate() error { return TurnRow(r).Validate() }

func (r EvaluationTurnRow) position() position { return TurnRow(r).position() }

// Table implements Row.
func (EvaluationCallRow) Table() Table { return EvaluationToolCalls }

// Validate implements Row.
func (r EvaluationCallRow) Validate() error { return ToolCallRow(r).Validate() }

func (r EvaluationCallRow) position() position { return ToolCallRow(r).position() }

// Table implements Row.
func (EvaluationTransitionRow) Table() Table { return EvaluationTransitions }

// Validate implements Row.
func (r EvaluationTransitionRow) Validate() error { return TransitionRow(r).Validate() }

func (r EvaluationTransitionRow) position() position { return TransitionRow(r).position() }

// Table implements Row.
func (EvaluationTrajectoryRow) Table() Table { return EvaluationTrajectories }

// Validate implements Row.
func (r EvaluationTrajectoryRow) Validate() error { return TrajectoryRow(r).Validate() }

func (r EvaluationTrajectoryRow) position() position { return TrajectoryRow(r).position() }
