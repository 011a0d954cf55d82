package chart

import (
	"fmt"
	"html"
	"strings"
)

// Tree is a drawing of paths that branch from each other: one line for each path, from the turn at which it begins to
// its end, with a mark at each turn.
type Tree struct {
	Title string
	Paths []Path // a path follows the one that it branches from
}

// Path is one line.
type Path struct {
	Name   string
	Parent int // index of the path that it branches from; −1 = none
	From   int // first turn
	Color  int // of its end
	End    string
	Turns  []PathTurn
}

// PathTurn is one mark.
type PathTurn struct {
	Color int
	Note  string
}

const (
	pathHeight = 22
	treeLeft   = 120
	treeRight  = 130
)

// SVG draws the tree.
func (t Tree) SVG() string {
	last := 1
	for _, p := range t.Paths {
		last = max(last, p.From+len(p.Turns))
	}
	step := float64(width-treeLeft-treeRight) / float64(last)
	x := func(turn int) float64 { return treeLeft + step*float64(turn) }
	y := func(path int) float64 { return top + pathHeight*(float64(path)+0.5) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, 2*top+pathHeight*len(t.Paths),
		html.EscapeString(t.Title))
	for i, p := range t.Paths {
		begin, end := x(p.From), x(p.From+len(p.Turns))
		if p.Parent >= 0 {
			fmt.Fprintf(&b, `<path class="line s12" d="M%.1f %.1fV%.1f"/>`, begin, y(p.Parent), y(i))
		}
		fmt.Fprintf(&b, `<path class="line s12" d="M%.1f %.1fH%.1f"/>`, begin, y(i), end)
		fmt.Fprintf(&b, `<text class="name end" x="%.1f" y="%.1f">%s</text>`, begin-6, y(i)+4,
			html.EscapeString(p.Name))
		for k, turn := range p.Turns {
			fmt.Fprintf(&b, `<circle class="dot s%d" cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`,
				turn.Color, x(p.From+k), y(i), html.EscapeString(turn.Note))
		}
		fmt.Fprintf(&b, `<rect class="column s%d" x="%.1f" y="%.1f" width="8" height="8" rx="2"/>`, p.Color, end,
			y(i)-4)
		fmt.Fprintf(&b, `<text class="name" x="%.1f" y="%.1f">%s</text>`, end+14, y(i)+4, html.EscapeString(p.End))
	}
	b.WriteString("</svg>")
	return b.String()
}
