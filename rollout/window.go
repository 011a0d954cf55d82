package rollout

// Window is what the policy sees of its trajectory at a turn where prompts hold the latest turns alone
// (history; verl-agent's and ARLArena's history_length): the task, then the turns that are held, then the
// turn's own context. In tokens of the whole trajectory these are [0, Head) and [From, …).
//
// Of the last turn that is left out its end of turn stays, which closes the message that the task opens:
// the policy reads an empty turn of its own in the place of all that it no longer sees. The zero Window
// is the whole trajectory.
type Window struct{ Head, From int }

// WindowAfter is the window of the turn that follows turns which end at ends, in tokens of the whole
// trajectory of which the first head are the task. A history of 0, or of as many turns as there are, holds
// all of them.
func WindowAfter(head int, ends []int, history int) Window {
	if history == 0 || len(ends) <= history {
		return Window{}
	}
	return Window{Head: head, From: ends[len(ends)-history-1] - 1}
}

// Len counts the tokens of the window up to a place of the trajectory.
func (w Window) Len(end int) int { return w.Head + end - w.From }

// Tokens cuts a window out of a trajectory's tokens, up to end. The whole is not copied.
func (w Window) Tokens(trajectory []int32, end int) []int32 {
	if w == (Window{}) {
		return trajectory[:end:end]
	}
	out := make([]int32, 0, w.Len(end))
	return append(append(out, trajectory[:w.Head]...), trajectory[w.From:end]...)
}
