package resample

import (
	"fmt"
	"slices"
)

// VoidRule chooses what makes a trajectory void.
type VoidRule string

// The rules.
const (
	VoidSomeTurn VoidRule = "some_turn" // some turn has neither a tool call that parses nor a final answer
	VoidNoCall   VoidRule = "no_call"   // no tool call in the whole response (SPEAR's text)
	VoidNoUse    VoidRule = "no_use"    // neither tool call nor answer in the whole response (SPEAR's mathematics)
	VoidLoose    VoidRule = "loose"     // some turn is not in the strict form (SPEAR's agents)
)

// Void masks void trajectories whole. The reward still counts in the group.
//
// Source: SimpleTIR, as SPEAR (Dr.BoT) and ARLArena use it. The texts agree on the intent only, so
// the rule is an option; SPEAR's released mathematics flag never fires, VoidNoUse is what it means.
type Void struct {
	Rule VoidRule // VoidSomeTurn when empty
}

// Validate reports the first bad field.
func (v Void) Validate() error {
	all := []VoidRule{"", VoidSomeTurn, VoidNoCall, VoidNoUse, VoidLoose}
	if !slices.Contains(all, v.Rule) {
		return fmt.Errorf("void.rule must be one of %v, got %q", all[1:], v.Rule)
	}
	return nil
}

// Match reports that the trajectory is void.
func (v Void) Match(r *Row) bool {
	switch v.Rule {
	case VoidNoCall:
		return r.ToolCalls == 0
	case VoidNoUse:
		return r.ToolCalls == 0 && r.AnswerTags == 0
	case VoidLoose:
		return r.LooseTurns > 0
	}
	return r.VoidTurns > 0
}

func (Void) name() string { return "void mask" }

func (Void) draws() bool { return false }

func (v Void) apply(s *step) { s.maskRows(VoidTurn, v.Match) }

// VoidTurns counts the turns that have neither a tool call that parsed nor a final answer; the two
// slices hold one entry a turn.
func VoidTurns(called, answered []bool) (int, error) {
	if len(called) != len(answered) {
		return 0, fmt.Errorf("count void turns: %d turns of calls for %d of answers", len(called), len(answered))
	}
	n := 0
	for t := range called {
		if !called[t] && !answered[t] {
			n++
		}
	}
	return n, nil
}
