package diagnose

// Valid-format and valid-action ratios (ARLArena section 3; SPEAR's void turns): of all turns, how
// many keep the strict response form, and how many take an action that the environment admits. A
// response may break the form and still hold an action that can be executed. Departures: none.

// Turn is the verdict on one turn.
type Turn struct {
	Format bool // the response has the strict form
	Action bool // its action is valid
}

// Validity counts the verdicts of a step.
type Validity struct {
	turns, format, action                      int
	trajectories, formatThrough, actionThrough int
}

// ValidityReport holds the ratios; each is 0 without turns.
type ValidityReport struct {
	Turns, Trajectories int
	Format, Action      float64 // share of turns
	FormatThroughout    float64 // share of trajectories whose every turn keeps the form
	ActionThroughout    float64 // … whose every action is valid
}

// Add adds one trajectory's turns; a trajectory without turns is not counted.
func (v *Validity) Add(turns ...Turn) {
	if len(turns) == 0 {
		return
	}
	format, action := 0, 0
	for _, t := range turns {
		if t.Format {
			format++
		}
		if t.Action {
			action++
		}
	}
	v.trajectories++
	v.turns += len(turns)
	v.format += format
	v.action += action
	if format == len(turns) {
		v.formatThrough++
	}
	if action == len(turns) {
		v.actionThrough++
	}
}

// Merge adds another shard's trajectories.
func (v *Validity) Merge(o *Validity) {
	v.turns += o.turns
	v.format += o.format
	v.action += o.action
	v.trajectories += o.trajectories
	v.formatThrough += o.formatThrough
	v.actionThrough += o.actionThrough
}

// Report returns the ratios.
func (v *Validity) Report() ValidityReport {
	return ValidityReport{
		Turns: v.turns, Trajectories: v.trajectories,
		Format:           share(v.format, v.turns),
		Action:           share(v.action, v.turns),
		FormatThroughout: share(v.formatThrough, v.trajectories),
		ActionThroughout: share(v.actionThrough, v.trajectories),
	}
}
