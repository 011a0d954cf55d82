package reward

import "fmt"

// Facts are the counts of one trajectory, as its environment recorded them. Rewards read only the fields that their
// equations name; a caller may leave the others zero.
type Facts struct {
	Success bool // the task was solved, or the answer agrees with the gold

	Turns          int // assistant turns
	ToolTurns      int // assistant turns with a tool call that parsed, or with an action that the world knows
	MalformedTurns int // assistant turns that are not wholly inside the tags of their task

	Calls         int // tool calls that the model began
	ParsedCalls   int // calls that could be read
	ExecutedCalls int // calls that ran to their end without an error

	Answered bool // a final answer could be extracted
}

// Validate names the first field that contradicts another, or is negative.
func (f Facts) Validate() error {
	for _, n := range []struct {
		name         string
		value, bound int
		of           string
	}{
		{"turns", f.Turns, f.Turns, ""},
		{"tool turns", f.ToolTurns, f.Turns, "turns"},
		{"malformed turns", f.MalformedTurns, f.Turns, "turns"},
		{"calls", f.Calls, f.Calls, ""},
		{"parsed calls", f.ParsedCalls, f.Calls, "calls"},
		{"executed calls", f.ExecutedCalls, f.ParsedCalls, "parsed calls"},
	} {
		if n.value < 0 {
			return fmt.Errorf("read facts: %s must not be negative, got %d", n.name, n.value)
		}
		if n.value > n.bound {
			return fmt.Errorf("read facts: %d %s of %d %s", n.value, n.name, n.bound, n.of)
		}
	}
	return nil
}

// wellFormed reports whether there are turns and all of them are wholly inside their tags.
func (f Facts) wellFormed() bool { return f.Turns > 0 && f.MalformedTurns == 0 }

// process is R_process of progressive reward shaping: −1, 0 or 1.
func (f Facts) process() float64 {
	switch {
	case f.ExecutedCalls < f.Calls:
		return -1
	case !f.Answered:
		return 0
	}
	return 1
}
