package chart

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Flows is a Sankey diagram: columns of nodes, and bands between neighbouring columns whose widths are the values that
// flow. A node's height is its value; the part without a band ends there.
type Flows struct {
	Title string
	Nodes []FlowNode // in the order of their stages
	Edges []FlowEdge
}

// FlowNode is one name in one column.
type FlowNode struct {
	Stage int
	Name  string
	Value float64
}

// FlowEdge leads from a node of a stage to one of the next.
type FlowEdge struct {
	Stage    int
	From, To string
	Value    float64
}

const (
	nodeWidth, nodeGap = 12, 8
	flowColors         = 8 // colours that the page's style tells apart
)

// names returns the names of the nodes, sorted, so that a name has the same colour and place in every column.
func (f Flows) names() []string {
	var out []string
	for _, n := range f.Nodes {
		out = append(out, n.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f Flows) color(name string) int { return 1 + slices.Index(f.names(), name)%flowColors }

// Legend names the nodes.
func (f Flows) Legend() []Key {
	var out []Key
	for _, name := range f.names() {
		out = append(out, Key{Name: name, Color: f.color(name), Mark: "column"})
	}
	return out
}

// box is the place of a node, and how much of its height bands have used on each side.
type box struct {
	x, y, height   float64
	taken, brought float64
}

// SVG draws the flows.
func (f Flows) SVG() string {
	boxes, scale := f.layout()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, html.EscapeString(f.Title))
	edges := slices.Clone(f.Edges)
	slices.SortStableFunc(edges, func(x, y FlowEdge) int {
		return strings.Compare(fmt.Sprintf("%04d", x.Stage)+x.From+"\x00"+x.To,
			fmt.Sprintf("%04d", y.Stage)+y.From+"\x00"+y.To)
	})
	for _, e := range edges {
		from, to := boxes[FlowNode{Stage: e.Stage, Name: e.From}], boxes[FlowNode{Stage: e.Stage + 1, Name: e.To}]
		if from == nil || to == nil {
			continue
		}
		w := e.Value * scale
		x0, y0, x1, y1 := from.x+nodeWidth, from.y+from.taken, to.x, to.y+to.brought
		from.taken, to.brought = from.taken+w, to.brought+w
		mid := (x0 + x1) / 2
		fmt.Fprintf(&b, `<path class="flow s%d" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f`+
			`L%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fZ"><title>%s → %s: %s</title></path>`,
			f.color(e.From), x0, y0, mid, y0, mid, y1, x1, y1, x1, y1+w, mid, y1+w, mid, y0+w, x0, y0+w,
			html.EscapeString(e.From), html.EscapeString(e.To), Value(e.Value, Plain))
	}
	for _, n := range f.Nodes {
		p := boxes[FlowNode{Stage: n.Stage, Name: n.Name}]
		fmt.Fprintf(&b, `<rect class="column s%d" x="%.1f" y="%.1f" width="%d" height="%.1f">`+
			`<title>call %d, %s: %s</title></rect>`,
			f.color(n.Name), p.x, p.y, nodeWidth, max(p.height, 1), n.Stage+1, html.EscapeString(n.Name),
			Value(n.Value, Plain))
	}
	b.WriteString("</svg>")
	return b.String()
}

// layout places the nodes of each column one below the other, and returns the height of one unit of value.
func (f Flows) layout() (boxes map[FlowNode]*box, scale float64) {
	last, sums, counts := 0, map[int]float64{}, map[int]int{}
	for _, n := range f.Nodes {
		last = max(last, n.Stage)
		sums[n.Stage] += n.Value
		counts[n.Stage]++
	}
	const room = height - 2*top
	for stage, sum := range sums {
		fits := (room - float64(nodeGap*(counts[stage]-1))) / sum
		if sum > 0 && (scale == 0 || fits < scale) {
			scale = max(fits, 0)
		}
	}
	boxes, down := map[FlowNode]*box{}, map[int]float64{}
	sorted := slices.Clone(f.Nodes)
	slices.SortStableFunc(sorted, func(a, b FlowNode) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range sorted {
		x := float64(left)
		if last > 0 {
			x += float64(n.Stage) / float64(last) * (plotWidth - nodeWidth)
		}
		boxes[FlowNode{Stage: n.Stage, Name: n.Name}] = &box{x: x, y: top + down[n.Stage], height: n.Value * scale}
		down[n.Stage] += n.Value*scale + nodeGap
	}
	return boxes, scale
}
