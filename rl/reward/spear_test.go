package reward

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12 }

// Worked by hand; μ(0) = 1, μ(100) = ½, μ(200) = 0 with a decay of 200.
func TestSPEARVariants(t *testing.T) {
	solved := Facts{Success: true, Turns: 4, ToolTurns: 3}
	failed := Facts{Turns: 4, ToolTurns: 3, MalformedTurns: 2}
	tests := []struct {
		name  string
		spear SPEAR
		facts Facts
		step  int
		want  SPEARParts
	}{
		{"paper, solved", SPEAR{}, solved, 0, SPEARParts{1, 1, 0.3, 0.1, 1.4}},
		{"paper, failed", SPEAR{}, failed, 100, SPEARParts{-1, 0.5, 0.3, 0, -0.85}},
		{"paper, no turns", SPEAR{}, Facts{}, 0, SPEARParts{-1, 1, 0, 0, -1}},
		{"paper, tool reward is capped", SPEAR{}, Facts{Turns: 30, ToolTurns: 30}, 0, SPEARParts{-1, 1, 1, 0.1, 0.1}},
		{"paper, by name", SPEAR{Variant: SPEARComposite}, solved, 200, SPEARParts{1, 0, 0.3, 0.1, 1.1}},
		{"paper, after the decay", SPEAR{Decay: 10}, solved, 11, SPEARParts{1, 0, 0.3, 0.1, 1.1}},
		{"without tool reward", SPEAR{WithoutTool: true}, solved, 0, SPEARParts{1, 0, 0.3, 0.1, 1.1}},
		{"maths, solved", SPEAR{Variant: SPEARMath}, solved, 0, SPEARParts{1, 1, 0.3, 0, 1.3}},
		{"maths, failed", SPEAR{Variant: SPEARMath}, failed, 100, SPEARParts{-1, 0.5, 0.3, 0, -0.85}},
		{"qwen3, solved", SPEAR{Variant: SPEARMathQwen3}, solved, 100, SPEARParts{1, 0.5, 1, 0, 1.5}},
		{
			"qwen3, solved without tools", SPEAR{Variant: SPEARMathQwen3}, Facts{Success: true, Turns: 1}, 0,
			SPEARParts{1, 1, 0, 0, 1},
		},
		{"qwen3, failed", SPEAR{Variant: SPEARMathQwen3}, failed, 0, SPEARParts{-1, 1, 0.3, 0, -0.7}},
		{"agent, solved", SPEAR{Variant: SPEARAgent}, solved, 0, SPEARParts{10, 1, 0.4, 0, 10.4}},
		{"agent, failed", SPEAR{Variant: SPEARAgent}, failed, 0, SPEARParts{0, 1, 0.4, -0.2, 0.2}},
		{"retool, right", SPEAR{Variant: ReTool}, solved, 0, SPEARParts{1, 0, 0, 0, 1}},
		{"retool, wrong, one turn", SPEAR{Variant: ReTool}, Facts{Turns: 1}, 0, SPEARParts{-1, 0, 0, 0, -1}},
		{"retool, wrong, four turns", SPEAR{Variant: ReTool}, failed, 0, SPEARParts{-0.7, 0, 0, 0, -0.7}},
		{
			"retool, wrong, counted messages", SPEAR{Variant: ReTool}, Facts{Turns: 1, Messages: 3}, 0,
			SPEARParts{-0.95, 0, 0, 0, -0.95},
		},
		{"retool, never above 0", SPEAR{Variant: ReTool}, Facts{Turns: 50}, 0, SPEARParts{0, 0, 0, 0, 0}},
	}
	for _, tt := range tests {
		got, err := tt.spear.Reward(tt.facts, tt.step)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for i, pair := range [][2]float64{
			{got.Outcome, tt.want.Outcome}, {got.Mu, tt.want.Mu}, {got.Tool, tt.want.Tool},
			{got.Format, tt.want.Format}, {got.Total, tt.want.Total},
		} {
			if !near(pair[0], pair[1]) {
				t.Errorf("%s: %+v, want %+v (part %d)", tt.name, got, tt.want, i)
			}
		}
	}
}

// In every variant the parts add up, a success never earns less than a failure with the same
// facts, and the tool reward fades.
func TestSPEARProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		f := Facts{Turns: rng.IntN(40)}
		f.ToolTurns, f.MalformedTurns = rng.IntN(f.Turns+1), rng.IntN(f.Turns+1)
		variants := []SPEARVariant{SPEARComposite, SPEARMath, SPEARMathQwen3, SPEARAgent, ReTool}
		s := SPEAR{Variant: variants[rng.IntN(len(variants))], Decay: rng.IntN(300)}
		step := rng.IntN(400)
		wrong, err := s.Reward(f, step)
		if err != nil {
			t.Fatal(err)
		}
		f.Success = true
		right, err := s.Reward(f, step)
		if err != nil {
			t.Fatal(err)
		}
		later, err := s.Reward(f, step+1)
		if err != nil {
			t.Fatal(err)
		}
		if right.Total < wrong.Total || later.Mu > right.Mu || right.Mu < 0 || right.Mu > 1 {
			t.Fatalf("%+v at %d: right %+v, wrong %+v, a step later %+v", s, step, right, wrong, later)
		}
		if !near(right.Total, right.Outcome+right.Mu*right.Tool+right.Format) {
			t.Fatalf("parts %+v do not add up", right)
		}
	}
}

func TestSPEARRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spear SPEAR
		facts Facts
		step  int
		want  string
	}{
		{
			"variant", SPEAR{Variant: "spear_chess"}, Facts{}, 0,
			`SPEAR reward: variant must be spear_composite, spear_math, spear_math_qwen3, spear_agent or retool, ` +
				`got "spear_chess"`,
		},
		{"decay", SPEAR{Decay: -1}, Facts{}, 0, "SPEAR reward: decay must be ≥ 0, got -1"},
		{"step", SPEAR{}, Facts{}, -1, "SPEAR reward: step must not be negative, got -1"},
		{"facts", SPEAR{}, Facts{Turns: 1, ToolTurns: 2}, 0, "read facts: 2 tool turns of 1 turns"},
	}
	for _, tt := range tests {
		if _, err := tt.spear.Reward(tt.facts, tt.step); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestFactsValidate(t *testing.T) {
	tests := []struct {
		facts Facts
		want  string
	}{
		{Facts{}, ""},
		{Facts{Turns: 3, ToolTurns: 3, MalformedTurns: 3, Messages: 7, Calls: 5, ParsedCalls: 4, ExecutedCalls: 3}, ""},
		{Facts{Turns: -1}, "read facts: turns must not be negative, got -1"},
		{Facts{Messages: -1}, "read facts: messages must not be negative, got -1"},
		{Facts{MalformedTurns: 1}, "read facts: 1 malformed turns of 0 turns"},
		{Facts{Calls: 1, ParsedCalls: 2}, "read facts: 2 parsed calls of 1 calls"},
		{Facts{Calls: 3, ParsedCalls: 1, ExecutedCalls: 2}, "read facts: 2 executed calls of 1 parsed calls"},
	}
	for _, tt := range tests {
		got := ""
		if err := tt.facts.Validate(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.facts, got, tt.want)
		}
	}
}

func ExampleSPEAR() {
	facts := Facts{Success: true, Turns: 6, ToolTurns: 5}
	for _, step := range []int{0, 100, 200} {
		p, err := SPEAR{}.Reward(facts, step)
		fmt.Printf("step %3d: %.2f %v\n", step, p.Total, err)
	}
	// Output:
	// step   0: 1.60 <nil>
	// step 100: 1.35 <nil>
	// step 200: 1.10 <nil>
}
