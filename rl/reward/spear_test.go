package reward

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12 }

// paper is the paper's form with its defaults.
var paper = SPEAR{ToolStep: toolRewardPerTurn, FormatBonus: formatReward}

func TestSPEARVariants(t *testing.T) {
	solved := Facts{Success: true, Turns: 4, ToolTurns: 3}
	failed := Facts{Turns: 4, ToolTurns: 3, MalformedTurns: 2}
	maths, qwen := spearTool{ToolStep: 0.1}, spearTool{ToolStep: 0.1, of: qwen3}
	agent := spearTool{ToolStep: 0.1, of: agents}
	tests := []struct {
		name   string
		reward func(Facts, float64) (SPEARParts, error)
		facts  Facts
		mu     float64
		want   SPEARParts
	}{
		{"paper, solved", paper.Reward, solved, 1, SPEARParts{1, 1, 0.3, 0.1, 1.4}},
		{"paper, failed", paper.Reward, failed, 0.5, SPEARParts{-1, 0.5, 0.3, 0, -0.85}},
		{"paper, no turns", paper.Reward, Facts{}, 1, SPEARParts{-1, 1, 0, 0, -1}},
		{"paper, tool reward is capped", paper.Reward, Facts{Turns: 30, ToolTurns: 30}, 1,
			SPEARParts{-1, 1, 1, 0.1, 0.1}},
		{"paper, after the decay", paper.Reward, solved, 0, SPEARParts{1, 0, 0.3, 0.1, 1.1}},
		{"without tool reward", SPEAR{FormatBonus: 0.1}.Reward, solved, 1, SPEARParts{1, 1, 0, 0.1, 1.1}},
		{"maths, solved", maths.reward, solved, 1, SPEARParts{1, 1, 0.3, 0, 1.3}},
		{"maths, failed", maths.reward, failed, 0.5, SPEARParts{-1, 0.5, 0.3, 0, -0.85}},
		{"qwen3, solved", qwen.reward, solved, 0.5, SPEARParts{1, 0.5, 1, 0, 1.5}},
		{"qwen3, solved without tools", qwen.reward, Facts{Success: true, Turns: 1}, 1, SPEARParts{1, 1, 0, 0, 1}},
		{"qwen3, without tool reward", spearTool{of: qwen3}.reward, solved, 1, SPEARParts{1, 1, 0, 0, 1}},
		{"qwen3, failed", qwen.reward, failed, 1, SPEARParts{-1, 1, 0.3, 0, -0.7}},
		{"agent, solved", agent.reward, solved, 1, SPEARParts{10, 1, 0.4, 0, 10.4}},
		{"agent, failed", agent.reward, failed, 1, SPEARParts{0, 1, 0.4, -0.2, 0.2}},
	}
	for _, tt := range tests {
		got, err := tt.reward(tt.facts, tt.mu)
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

func TestReTool(t *testing.T) {
	right := Outcome{Verdict: Exact}
	for name, tt := range map[string]struct {
		turns int
		o     Outcome
		want  float64
	}{
		"right": {4, right, 1}, "wrong, one turn": {1, Outcome{}, -1}, "wrong, four turns": {4, Outcome{}, -0.7},
		"never above 0": {50, Outcome{}, 0},
	} {
		got, err := retoolReward{}.Score(Trajectory{Facts: Facts{Turns: tt.turns}}, tt.o)
		if err != nil || !near(got, tt.want) {
			t.Errorf("%s: %g, %v, want %g", name, got, err, tt.want)
		}
	}
}

// In every variant the parts add up, and a success never earns less than a failure with the same facts.
func TestSPEARProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	variants := []func(Facts, float64) (SPEARParts, error){paper.Reward, spearTool{ToolStep: 0.1}.reward,
		spearTool{ToolStep: 0.1, of: qwen3}.reward, spearTool{ToolStep: 0.1, of: agents}.reward}
	for range 2000 {
		f, mu := Facts{Turns: rng.IntN(40)}, rng.Float64()
		f.ToolTurns, f.MalformedTurns = rng.IntN(f.Turns+1), rng.IntN(f.Turns+1)
		reward := variants[rng.IntN(len(variants))]
		wrong, err := reward(f, mu)
		if err != nil {
			t.Fatal(err)
		}
		f.Success = true
		right, err := reward(f, mu)
		if err != nil {
			t.Fatal(err)
		}
		if right.Total < wrong.Total {
			t.Fatalf("right %+v, wrong %+v", right, wrong)
		}
		if !near(right.Total, right.Outcome+right.Mu*right.Tool+right.Format) {
			t.Fatalf("parts %+v do not add up", right)
		}
	}
}

func TestSPEARRefuses(t *testing.T) {
	for want, x := range map[string]struct {
		facts Facts
		mu    float64
	}{
		"SPEAR reward: mu must be finite and not negative, got -1":  {Facts{}, -1},
		"SPEAR reward: mu must be finite and not negative, got NaN": {Facts{}, math.NaN()},
		"read facts: 2 tool turns of 1 turns":                       {Facts{Turns: 1, ToolTurns: 2}, 1},
	} {
		if _, err := paper.Reward(x.facts, x.mu); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := (retoolReward{}).Score(Trajectory{Facts: Facts{Turns: -1}}, Outcome{}); err == nil {
		t.Error("ReTool takes facts that contradict each other")
	}
}

func TestFactsValidate(t *testing.T) {
	tests := []struct {
		facts Facts
		want  string
	}{
		{Facts{}, ""},
		{Facts{Turns: 3, ToolTurns: 3, MalformedTurns: 3, Calls: 5, ParsedCalls: 4, ExecutedCalls: 3}, ""},
		{Facts{Turns: -1}, "read facts: turns must not be negative, got -1"},
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
	for _, mu := range []float64{1, 0.5, 0} {
		p, err := SPEAR{ToolStep: 0.1, FormatBonus: 0.1}.Reward(facts, mu)
		fmt.Printf("μ %.1f: %.2f %v\n", mu, p.Total, err)
	}
	// Output:
	// μ 1.0: 1.60 <nil>
	// μ 0.5: 1.35 <nil>
	// μ 0.0: 1.10 <nil>
}
