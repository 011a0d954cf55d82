package api

// PruneInput asks to delete the checkpoints that a run no longer needs. Its step is the latest finished step.
type PruneInput struct {
	Scope
	// Retention is the result of the run's last pruning. If it is nil, the activity reads the state from the record,
	// which takes longer the longer the run is.
	Retention *Retention `json:"retention,omitempty"`
	// Evaluated are the evaluations since then.
	Evaluated []EvaluatedStep `json:"evaluated,omitempty"`
}

// Pruned is the result of a pruning; the next pruning starts from it.
type Pruned struct {
	Steps     []int     `json:"steps,omitempty"` // steps whose checkpoints were deleted
	Retention Retention `json:"retention"`
	Timing    Timing    `json:"timing"`
}

// Retention is what pruning remembers about a run's checkpoints from one step to the next. Its size depends on the
// rule and not on the number of steps.
type Retention struct {
	// Rule is the recipe's section checkpoint that the other fields were computed with; after a change of the rule
	// they are computed from the record again. Nil: no step has been looked at.
	Rule *RetentionRule `json:"rule,omitempty"`
	// Past is the last step that keep_last no longer protects. The lists below are complete for all steps up to it.
	Past int `json:"past"`
	// Spared are the checkpoints of those steps that still exist and that a later pruning may delete.
	Spared []SparedCheckpoint `json:"spared,omitempty"`
	// Best are the best evaluations so far.
	Best []EvaluatedStep `json:"best,omitempty"`
}

// RetentionRule is the recipe's section checkpoint.
type RetentionRule struct {
	Every    int `json:"every"`
	KeepLast int `json:"keep_last"`
	KeepBest int `json:"keep_best"`
}

// SparedCheckpoint is the place of a checkpoint and the steps that end with it. Several steps share a checkpoint if
// their updates changed nothing.
type SparedCheckpoint struct {
	Prefix string `json:"prefix"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
}

// Has reports whether a step ends with the checkpoint.
func (s SparedCheckpoint) Has(step int) bool { return s.First <= step && step <= s.Last }

// EvaluatedStep is a step's sampled success rate on the held-out problems.
type EvaluatedStep struct {
	Step    int     `json:"step"`
	Success float64 `json:"success"`
}
