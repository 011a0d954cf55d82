package diagnose

// What trajectories cost: tool calls (in all and by tool), response tokens, turns and the share cut
// off at the length limit, which rStar2-Agent calls the clip ratio (section 4.3: at about 10% it
// moves on to a longer limit). Departures: none.

import (
	"fmt"
	"maps"
	"slices"
)

// Trajectory is what one trajectory cost.
type Trajectory struct {
	Calls     map[string]int // tool calls by tool or class of call
	Tokens    int            // of the response, tool output included where the limit counts it
	Turns     int            // of the assistant
	Truncated bool           // cut off at the length limit
}

// Effort gathers the cost of a step's trajectories.
type Effort struct {
	truncated            int
	calls, tokens, turns series
	tools                map[string]*toolCalls
}

type toolCalls struct{ trajectories, calls int }

// EffortReport holds means and extremes by trajectory.
type EffortReport struct {
	Trajectories  int
	Calls         Spread
	ByTool        []ToolCalls // in the order of their names
	Tokens, Turns Spread
	Truncated     float64 // share of trajectories
}

// ToolCalls is the use of one tool.
type ToolCalls struct {
	Tool         string
	Calls        int
	Mean         float64 // calls per trajectory, those without a call included
	Trajectories int     // that called it
}

// Add adds trajectories. If one is refused, none is added.
func (e *Effort) Add(trajectories ...Trajectory) error {
	for i, t := range trajectories {
		if err := checkCounts("trajectory", i, t.Tokens, t.Turns); err != nil {
			return err
		}
		for _, tool := range slices.Sorted(maps.Keys(t.Calls)) {
			if t.Calls[tool] < 0 {
				return fmt.Errorf("%w: trajectory %d has %d calls of %s", ErrBadInput, i, t.Calls[tool], tool)
			}
		}
	}
	for _, t := range trajectories {
		calls := 0
		for tool, n := range t.Calls { // counts do not depend on the order
			calls += n
			if n > 0 {
				e.tool(tool, toolCalls{1, n})
			}
		}
		e.calls.add(float64(calls))
		e.tokens.add(float64(t.Tokens))
		e.turns.add(float64(t.Turns))
		if t.Truncated {
			e.truncated++
		}
	}
	return nil
}

func (e *Effort) tool(name string, more toolCalls) {
	if e.tools == nil {
		e.tools = map[string]*toolCalls{}
	}
	if e.tools[name] == nil {
		e.tools[name] = &toolCalls{}
	}
	e.tools[name].trajectories += more.trajectories
	e.tools[name].calls += more.calls
}

// Merge adds another shard's trajectories.
func (e *Effort) Merge(o *Effort) {
	e.truncated += o.truncated
	e.calls.merge(&o.calls)
	e.tokens.merge(&o.tokens)
	e.turns.merge(&o.turns)
	for name, theirs := range o.tools {
		e.tool(name, *theirs)
	}
}

// Report returns means and extremes.
func (e *Effort) Report() EffortReport {
	out := EffortReport{
		Trajectories: e.calls.N, Calls: e.calls.spread(), Tokens: e.tokens.spread(), Turns: e.turns.spread(),
		Truncated: share(e.truncated, e.calls.N),
	}
	for _, name := range slices.Sorted(maps.Keys(e.tools)) {
		t := e.tools[name]
		out.ByTool = append(out.ByTool, ToolCalls{name, t.calls, share(t.calls, e.calls.N), t.trajectories})
	}
	return out
}
