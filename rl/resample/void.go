package resample

import "github.com/ropewalk/ropewalk/rl/choice"

var voidTurns = Filter{
	Choice: choice.Choice{
		Name: "void_turns", Doc: "trajectories with a turn that neither acts nor answers are masked",
		Source: "SimpleTIR (Xue et al. 2025); SPEAR §4.3", Settings: voidTurnsMask{},
		Field: "mask a trajectory with a turn that has neither a parsable tool call nor a final answer",
	},
	Label:     "void",
	Why:       VoidTurn,
	VoidTurns: true,
}

// voidTurnsMask masks all tokens of trajectories with a void turn: one that has neither a tool call that parses nor a
// final answer. The reward still counts in the group.
//
// Source: SimpleTIR, as SPEAR (Dr.BoT) and ARLArena use it. The papers agree only on the intent. Departures: SPEAR's
// text looks for a call in the whole response, its agents at the strict form of each turn; the flag in its released
// mathematics code never fires.
type voidTurnsMask struct{}

// Mask reports that some turn is void.
func (voidTurnsMask) Mask(r Response) bool { return r.VoidTurns > 0 }
