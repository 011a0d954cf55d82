package report

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report/chart"
	"github.com/ropewalk/ropewalk/schema"
)

// Episode is one trajectory as the page shows it.
type Episode struct {
	ID      string
	Anchor  string // of the page
	Kind    string // positive, negative or dropped; of an evaluation solved or not solved
	Title   string
	Facts   []Tile
	Asked   string // what the environment showed first, in lines; empty for a question, which is the title
	Turns   []Turn
	Omitted int // tokens left out to keep the page small
}

// Class is the class of the page's style for the episode's kind.
func (e Episode) Class() string {
	switch e.Kind {
	case "solved":
		return "positive"
	case "not solved":
		return "negative"
	}
	return e.Kind
}

// Turn is one turn and its tool calls.
type Turn struct {
	Number int
	Spans  []Span
	Cut    bool // at the token limit
	// Summary is true where the policy wrote a summary of its episode instead of acting.
	Summary bool
	Calls   []analysis.Call
	Moves   []Move
}

// Span is one piece as the page marks it up: class says its colours.
type Span struct {
	Text, Class, Title string
}

// Move is an action and what it led to, in an interactive environment.
type Move struct {
	Failed bool
	Parts  []analysis.Part
}

func (w pieceWriter) episode(e analysis.Episode) Episode {
	r, t, s := e.Reward, e.Trajectory, e.Selection
	out := Episode{ID: s.TrajectoryID, Anchor: "t-" + strings.ReplaceAll(s.TrajectoryID, "/", "-"),
		Title: e.Prompt.Problem}
	w.layout = w.layout.Of(e.Prompt)
	if w.layout.Interactive() {
		out.Asked = clipped(w.layout.Task(e.Prompt))
		out.Title = titleOf(out.Asked, int(t.Level))
	}
	if e.Held != nil {
		w.held(&out, e)
		return out
	}
	reward := Tile{"reward", "none", ""}
	switch {
	case r != nil:
		reward = Tile{"reward", strconv.FormatFloat(r.Reward, 'g', 4, 64), r.Verdict}
	case s.Excluded != nil: // something broke the trajectory, so that it was never graded
		reward.Note = *s.Excluded
	}
	fate := "kept"
	switch {
	case !s.Kept && s.Reason != "":
		out.Kind, fate = "dropped", s.Reason
	case !s.Kept:
		out.Kind, fate = "dropped", "not selected"
	case r != nil && r.Reward > 0:
		out.Kind = "positive"
	default:
		out.Kind = "negative"
	}
	if s.Masked != nil {
		fate = "kept, masked: " + *s.Masked
	}
	out.Facts = append([]Tile{reward, {"level", strconv.Itoa(int(t.Level)), ""}, {"selection", fate, ""}},
		w.counted(e)...)
	if e.Advantage != nil {
		out.Facts = append(out.Facts, Tile{"advantage", chart.Value(*e.Advantage, chart.Plain),
			fmt.Sprintf("weight %.3g, count %d", s.Weight, s.Count)})
	}
	if j := e.Judgement; j != nil {
		out.Facts = append(out.Facts, judgement(*j))
	}
	w.turns(&out, e)
	return out
}

// judgement is what a judge found of the episode's answer.
func judgement(j schema.JudgementRow) Tile {
	if j.Excluded != nil {
		return Tile{"judge", "no verdict", *j.Excluded}
	}
	return Tile{"judge", j.Verdict, j.Criterion + "; " + j.Model}
}

// counted are the facts that trajectories of a step and of an evaluation share.
func (w pieceWriter) counted(e analysis.Episode) (out []Tile) {
	t := e.Trajectory
	calls, failed := "tool calls", "failed"
	if w.layout.Interactive() {
		calls, failed = "actions", "invalid"
	} else {
		out = append(out, Tile{"answer", cmp.Or(t.FinalAnswer, "none"), "gold " + t.Gold})
	}
	return append(out,
		Tile{"tokens", strconv.Itoa(int(t.Tokens)), fmt.Sprintf("%d written by the policy", t.ResponseTokens)},
		Tile{calls, strconv.Itoa(int(t.ToolCalls)), fmt.Sprintf("%d %s", t.ToolErrors, failed)})
}

// held fills in an episode of an evaluation, which has neither reward nor selection.
func (w pieceWriter) held(out *Episode, e analysis.Episode) {
	out.Anchor, out.Kind = "e"+strings.TrimPrefix(out.Anchor, "t"), "not solved"
	if e.Held.Success {
		out.Kind = "solved"
	}
	how := "sample " + strconv.Itoa(int(e.Held.Sample))
	if e.Held.Greedy {
		how = "greedy"
	}
	out.Facts = append([]Tile{{"held out", out.Kind, how}, {"level", strconv.Itoa(int(e.Trajectory.Level)), ""}},
		w.counted(e)...)
	w.turns(out, e)
}

// titleOf is the last sentence of what was asked, as one line; a board has none.
func titleOf(asked string, level int) string {
	lines := strings.Split(asked, "\n")
	for _, line := range slices.Backward(lines) {
		if sentence.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return "level " + strconv.Itoa(level)
}

// sentence matches a line with two words of letters that begins with a capital.
var sentence = regexp.MustCompile(`^\p{Lu}\p{L}*:? \p{L}{2,}`)

// turns adds the episode's turns while there is room for their tokens.
func (w pieceWriter) turns(out *Episode, e analysis.Episode) {
	from, left := 0, w.most
	for _, t := range e.Turns {
		var advantages []float32
		if to := from + len(t.TokenIDs); to <= len(e.Advantages) {
			advantages = e.Advantages[from:to]
		}
		from += len(t.TokenIDs)
		turn := Turn{Number: int(t.Turn), Cut: t.Finish == "length", Summary: t.IsSummary()}
		pieces := w.turn(t, advantages)
		shown := min(left, len(pieces))
		out.Omitted += len(pieces) - shown
		left -= shown
		for _, p := range pieces[:shown] {
			turn.Spans = append(turn.Spans, w.span(p))
		}
		for _, c := range e.CallsOf(t.Turn) {
			call := w.layout.Call(c)
			call.Parts = clippedParts(call.Parts)
			turn.Calls = append(turn.Calls, call)
		}
		for _, x := range e.MovesOf(t.Turn) {
			turn.Moves = append(turn.Moves, Move{!x.Valid, clippedParts(w.layout.Move(x))})
		}
		out.Turns = append(out.Turns, turn)
	}
}

// longestPart bounds the length of a program or of its output on the page, in bytes.
const longestPart = 4096

func clipped(s string) string {
	if len(s) <= longestPart {
		return s
	}
	return schema.Text(s[:longestPart]) + fmt.Sprintf("\n… %d more bytes", len(s)-longestPart)
}

func clippedParts(parts []analysis.Part) []analysis.Part {
	for i := range parts {
		parts[i].Text = clipped(parts[i].Text)
	}
	return parts
}

// shades is how many shades of a colour the page's style has; 0 is none.
const shades = 9

// Scales of the colours: a log-probability of −4 and an entropy of 2 nats are darkest.
const (
	darkestSurprise = 4
	darkestEntropy  = 2
)

// span gives a piece the classes of its colours: l, e, and p or n for the sign of the advantage.
func (w pieceWriter) span(p Piece) Span {
	out := Span{Text: p.Text, Class: "c"}
	if !p.Written {
		return out
	}
	out.Class = "w"
	var told []string
	if !math.IsNaN(p.LogProb) {
		out.Class += fmt.Sprintf(" l%d", shade(-p.LogProb/darkestSurprise))
		told = append(told, fmt.Sprintf("log-probability %s (%s)", minus(p.LogProb),
			chart.Value(math.Exp(math.Min(p.LogProb, 0)), chart.Percent)))
	}
	if !math.IsNaN(p.Entropy) {
		out.Class += fmt.Sprintf(" e%d", shade(p.Entropy/darkestEntropy))
		told = append(told, fmt.Sprintf("entropy %s nats", minus(p.Entropy)))
	}
	if !math.IsNaN(p.Advantage) {
		sign := "p"
		if p.Advantage < 0 {
			sign = "n"
		}
		out.Class += fmt.Sprintf(" %s%d", sign, shade(math.Abs(p.Advantage)/w.scale))
		told = append(told, fmt.Sprintf("advantage × weight %s", minus(p.Advantage)))
	}
	out.Title = strings.Join(told, "\n")
	return out
}

// shade maps 0…1 to 0…shades by the square root, so that small values remain distinguishable.
func shade(x float64) int {
	if !(x > 0) { // also of 0/0
		return 0
	}
	return int(math.Round(shades * math.Sqrt(math.Min(x, 1))))
}

func minus(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'f', 3, 64), "-", "−", 1)
}
