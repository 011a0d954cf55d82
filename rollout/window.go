package rollout

// Window is the part of its trajectory that the policy sees at a turn, if prompts hold only the latest turns (History;
// history_length in verl-agent and ARLArena). The policy sees the task, then the held turns, then the turn's own
// context. In tokens of the whole trajectory, these are [0, Head) and [From, …).
//
// The window keeps the end of turn of the last turn that it leaves out. This closes the message that the task opens, so
// the policy reads an empty turn in place of the turns that it no longer sees. The zero Window is the whole
// trajectory.
type Window struct{ Head, From int }

// History says which earlier turns a prompt holds. The zero History holds all turns. With both limits, both apply.
// Summary excludes the two limits, except where contexts are whole prompts.
type History struct {
	Turns int // the latest turns; 0 = no limit
	// Tokens bounds the task and the held turns together, without the turn's own context; 0 = no limit. The oldest
	// turns leave first, each as a whole. The task always stays, even if it alone is longer.
	Tokens int
	// Own is set where contexts are whole prompts. At a turn, the policy sees only that turn's context.
	Own bool
	// Summary is the number of turns after which the policy writes a summary, in a separate turn. A prompt then
	// holds the task, the latest summary and the turns after it. 0 = no summaries.
	Summary int
}

// OwnContext is the history of episodes whose contexts are whole prompts.
var OwnContext = History{Own: true}

// Span is the position of a response among the tokens of its trajectory. The turn ends where its response ends.
type Span struct{ Begin, End int }

// WindowAfter returns the window of the turn that follows the given turns. The task is the first head tokens. The
// window depends on earlier turns alone, so rows of single turns can be joined again without the length of their own
// contexts.
func WindowAfter(head int, past []Span, history History) Window {
	switch n := len(past); {
	case n == 0:
		return Window{}
	case history.Own:
		return Window{From: past[n-1].End}
	case history.Summary > 0:
		if s := history.latestSummary(n); s >= 0 {
			// The summary answers the task. What was asked before it, with the results of calls, is left out.
			return Window{Head: head, From: past[s].Begin}
		}
		return Window{}
	}
	return leavingOut(history.LeftOut(head, past), head, past)
}

// LeftOut counts the earlier turns that the prompt after the given turns does not hold. head and past are those of
// WindowAfter. A history of whole prompts leaves that to its prompts, so it counts none.
func (h History) LeftOut(head int, past []Span) int {
	if h.Summary > 0 && !h.Own {
		return max(0, h.latestSummary(len(past)))
	}
	left := 0
	if h.Turns > 0 {
		left = max(0, len(past)-h.Turns)
	}
	for h.Tokens > 0 && left < len(past) && leavingOut(left, head, past).Len(past[len(past)-1].End) > h.Tokens {
		left++
	}
	return left
}

// leavingOut is the window without the first turns.
func leavingOut(turns, head int, past []Span) Window {
	if turns == 0 {
		return Window{}
	}
	return Window{Head: head, From: past[turns-1].End - 1}
}

// Len counts the tokens of the window up to the token index end of the trajectory.
func (w Window) Len(end int) int { return w.Head + end - w.From }

// Tokens returns the window's part of a trajectory's tokens, up to end. It does not copy a whole trajectory.
func (w Window) Tokens(trajectory []int32, end int) []int32 {
	if w == (Window{}) {
		return trajectory[:end:end]
	}
	out := make([]int32, 0, w.Len(end))
	return append(append(out, trajectory[:w.Head]...), trajectory[w.From:end]...)
}
