package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlows(t *testing.T) {
	f := Flows{Title: "a <b>", Nodes: []FlowNode{{0, "x", 3}, {0, "y", 1}, {1, "x", 2}},
		Edges: []FlowEdge{{0, "x", "x", 2}, {0, "x", "gone", 1}}}
	boxes, scale := f.layout()
	// The first column holds 4 and one gap: it decides how high a unit is.
	require.InDelta(t, (height-2*top-nodeGap)/4.0, scale, 1e-9)
	require.InDelta(t, 3*scale, boxes[FlowNode{Stage: 0, Name: "x"}].height, 1e-9)
	require.InDelta(t, top+3*scale+nodeGap, boxes[FlowNode{Stage: 0, Name: "y"}].y, 1e-9)
	require.InDelta(t, left+plotWidth-nodeWidth, boxes[FlowNode{Stage: 1, Name: "x"}].x, 1e-9)
	svg := f.SVG()
	require.Contains(t, svg, "a &lt;b&gt;")
	require.Contains(t, svg, "<title>x → x: 2</title>")
	require.NotContains(t, svg, "gone")
	require.Equal(t, []Key{{"x", 1, "column"}, {"y", 2, "column"}}, f.Legend())
	require.Equal(t, svg, f.SVG(), "the same each time")
}
