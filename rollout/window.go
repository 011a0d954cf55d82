package rollout

// Window is the part of its trajectory that the policy sees at a turn, if prompts hold only the latest turns (history;
// history_length in verl-agent and ARLArena). The policy sees the task, then the held turns, then the turn's own
// context. In tokens of the whole trajectory, these are [0, Head) and [From, …).
//
// The window keeps the end of turn of the last turn that it leaves out. This closes the message that the task opens, so
// the policy reads an empty turn of its own in place of the turns that it no longer sees. The zero Window is the whole
// trajectory.
type Window struct{ Head, From int }

// OwnContext is the history of episodes whose contexts are whole prompts. At a turn, the policy sees only that turn's
// context.
const OwnContext = -1

// WindowAfter returns the window of the turn that follows the given turns. ends holds the end of each turn, in tokens
// of the whole trajectory. The task is the first head tokens. A history of 0, or of at least as many turns as there
// are, holds all turns. OwnContext holds none.
func WindowAfter(head int, ends []int, history int) Window {
	if history == OwnContext && len(ends) > 0 {
		return Window{From: ends[len(ends)-1]}
	}
	if history <= 0 || len(ends) <= history {
		return Window{}
	}
	return Window{Head: head, From: ends[len(ends)-history-1] - 1}
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
