package report

import (
	"cmp"
	"fmt"
	"math"
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
	Kind    string // positive, negative or dropped
	Title   string
	Facts   []Tile
	Turns   []Turn
	Omitted int // tokens left out to keep the page small
}

// Turn is one turn and its tool calls.
type Turn struct {
	Number int
	Spans  []Span
	Cut    bool // at the token limit
	Calls  []Call
}

// Span is one piece as the page marks it up: class says its colours.
type Span struct {
	Text, Class, Title string
}

// Call is one tool call and its result.
type Call struct {
	Name, Status string
	Failed       bool
	Parts        []Tile // code, stdin, stdout, …
}

func (w pieceWriter) episode(e analysis.Episode) Episode {
	r, t, s := e.Reward, e.Trajectory, e.Selection
	out := Episode{ID: s.TrajectoryID, Anchor: "t-" + strings.ReplaceAll(s.TrajectoryID, "/", "-"),
		Title: e.Prompt.Problem}
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
	out.Facts = []Tile{
		reward, {"level", strconv.Itoa(int(t.Level)), ""},
		{"selection", fate, ""}, {"answer", cmp.Or(t.FinalAnswer, "none"), "gold " + t.Gold},
		{"tokens", strconv.Itoa(int(t.Tokens)), fmt.Sprintf("%d written by the policy", t.ResponseTokens)},
		{"tool calls", strconv.Itoa(int(t.ToolCalls)), fmt.Sprintf("%d failed", t.ToolErrors)},
	}
	if e.Advantage != nil {
		out.Facts = append(out.Facts, Tile{"advantage", chart.Value(*e.Advantage, chart.Plain),
			fmt.Sprintf("weight %.3g, count %d", s.Weight, s.Count)})
	}
	w.turns(&out, e)
	return out
}

// turns adds the episode's turns while there is room for their tokens.
func (w pieceWriter) turns(out *Episode, e analysis.Episode) {
	from, left := 0, w.most
	for _, t := range e.Turns {
		var advantages []float32
		if to := from + len(t.TokenIDs); to <= len(e.Advantages) {
			advantages = e.Advantages[from:to]
		}
		from += len(t.TokenIDs)
		turn := Turn{Number: int(t.Turn), Cut: t.Finish == "length"}
		pieces := w.turn(t, advantages)
		shown := min(left, len(pieces))
		out.Omitted += len(pieces) - shown
		left -= shown
		for _, p := range pieces[:shown] {
			turn.Spans = append(turn.Spans, w.span(p))
		}
		for _, c := range e.Calls {
			if c.Turn == t.Turn {
				turn.Calls = append(turn.Calls, call(c))
			}
		}
		out.Turns = append(out.Turns, turn)
	}
}

func call(c schema.ToolCallRow) Call {
	out := Call{Name: cmp.Or(c.Name, "(not a valid call)"), Status: c.Status, Failed: c.Status != "ok"}
	if c.ExitCode != 0 {
		out.Status += fmt.Sprintf(", exit code %d", c.ExitCode)
	}
	for _, p := range []Tile{{Name: "code", Value: c.Code}, {Name: "stdin", Value: c.Stdin},
		{Name: "stdout", Value: c.Stdout}, {Name: "stderr", Value: c.Stderr}, {Name: "value", Value: c.Value}} {
		if p.Value != "" {
			p.Value = clipped(p.Value)
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// longestPart bounds the length of a program or of its output on the page, in bytes.
const longestPart = 4096

func clipped(s string) string {
	if len(s) <= longestPart {
		return s
	}
	return schema.Text(s[:longestPart]) + fmt.Sprintf("\n… %d more bytes", len(s)-longestPart)
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
