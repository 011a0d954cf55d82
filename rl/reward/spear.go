package reward

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// SPEAR's composite reward:
//
//	R      = R_outcome + μ(t)·R_tool + R_format
//	R_outcome = +1 if the task is solved, else −1
//	R_tool    = min(1, 0.1·n), n = turns whose tool call parsed, or whose action the world knows
//	R_format  = 0.1 iff every turn is well wrapped, else 0
//	μ(t)      = the weight of the tool term at step t (package schedule)
//
// Source: SPEAR, equations 17–21. Departures: none in the
// variant of the paper; the others are the forms of its release:
//
//	spear_math        ±1 + μ·min(1, 0.1n); no format term
//	spear_math_qwen3  wrong: −1 + μ·min(1, 0.1n); right: 1 + μ·1[n > 0]
//	spear_agent       10·solved + μ·min(1, 0.1·turns) − 0.1·(malformed turns): all turns count
//	retool            right: 1; wrong: min(0, −1 + 0.1·(turns − 1)); the baseline
//
// A trajectory without turns is not well wrapped.

var spear = Declaration{
	Choice: choice.Choice{
		Name: "spear", Doc: "±1 + μ·min(1, 0.1·calls) + 0.1 if every turn is well wrapped", Source: "SPEAR eqs 17–20",
		Settings: SPEAR{ToolStep: toolRewardPerTurn, FormatBonus: formatReward},
		Reads:    choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true, ToolTerm: true,
}

var spearMath = Declaration{
	Choice: choice.Choice{
		Name: "spear_math", Doc: "±1 + μ·min(1, 0.1·turns with calls)", Source: "SPEAR's released code, mathematics",
		Settings: spearTool{ToolStep: toolRewardPerTurn},
		Reads:    choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true, ToolTerm: true,
}

var spearMathQwen3 = Declaration{
	Choice: choice.Choice{
		Name: "spear_math_qwen3", Doc: "spear_math where a right answer earns the whole tool term with one call",
		Source:   "SPEAR's released code, Qwen3",
		Settings: spearTool{ToolStep: toolRewardPerTurn, of: qwen3},
		Reads:    choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true, ToolTerm: true,
}

var spearAgent = Declaration{
	Choice: choice.Choice{
		Name: "spear_agent", Doc: "10·won + μ·min(1, 0.1·turns), less 0.1 for an invalid turn",
		Source: "SPEAR's released code, agents", Settings: spearTool{ToolStep: toolRewardPerTurn, of: agents},
	},
	ReadsTurns: true, ToolTerm: true,
}

var retool = Declaration{
	Choice: choice.Choice{
		Name: "retool", Doc: "1, or −1 softened by 0.1 for each two turns, at most 0",
		Source:   "ReTool (Feng et al. 2025) in SPEAR's released code",
		Settings: retoolReward{}, Reads: choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true,
}

// SPEAR is the paper's form.
type SPEAR struct {
	ToolStep    float64 `json:"tool_step" min:"0" max:"1000" doc:"the tool term is min(1, tool_step × calls), times μ of the schedule"`
	FormatBonus float64 `json:"format_bonus" min:"0" max:"1000" doc:"added where every turn is well wrapped"`
}

// The variants of the release have the tool term alone, or no parameter.
type (
	spearTool struct {
		ToolStep float64 `json:"tool_step"`
		of       spearTerms
	}
	retoolReward struct{}
)

// spearTerms are the terms of a variant; "" is that for mathematics.
type spearTerms string

const (
	qwen3  spearTerms = "qwen3"
	agents spearTerms = "agents"
)

const (
	toolRewardPerTurn  = 0.1
	formatReward       = 0.1
	agentSuccess       = 10
	agentFormatPenalty = 0.1
	retoolPerTurn      = 0.1
)

// SPEARParts are the terms of one reward: Total = Outcome + Mu·Tool + Format.
type SPEARParts struct {
	Outcome, Mu, Tool, Format, Total float64
}

// Score is the paper's form.
func (s SPEAR) Score(t Trajectory, o Outcome) (float64, error) {
	parts, err := s.Reward(t.facts(o), t.ToolWeight)
	return parts.Total, err
}

// Reward gives the terms of the paper's form at the weight μ of the tool term.
func (s SPEAR) Reward(f Facts, mu float64) (SPEARParts, error) {
	return SPEARParts{
		Outcome: plusMinus(f.Success), Tool: perTurn(s.ToolStep, f.ToolTurns),
		Format: s.FormatBonus * indicator(f.wellFormed()),
	}.weigh(f, mu)
}

// Score is the release's form for mathematics, for Qwen3 or for agents.
func (s spearTool) Score(t Trajectory, o Outcome) (float64, error) {
	parts, err := s.reward(t.facts(o), t.ToolWeight)
	return parts.Total, err
}

func (s spearTool) reward(f Facts, mu float64) (SPEARParts, error) {
	p := SPEARParts{Outcome: plusMinus(f.Success), Tool: perTurn(s.ToolStep, f.ToolTurns)}
	switch {
	case s.of == agents:
		p.Outcome, p.Tool = agentSuccess*indicator(f.Success), perTurn(s.ToolStep, f.Turns)
		p.Format = -agentFormatPenalty * float64(f.MalformedTurns)
	case s.of == qwen3 && f.Success && s.ToolStep > 0:
		p.Tool = indicator(f.ToolTurns > 0)
	}
	return p.weigh(f, mu)
}

// weigh checks the facts and adds up the terms.
func (p SPEARParts) weigh(f Facts, mu float64) (SPEARParts, error) {
	if err := f.Validate(); err != nil {
		return SPEARParts{}, err
	}
	if !(mu >= 0) || math.IsInf(mu, 0) {
		return SPEARParts{}, fmt.Errorf("SPEAR reward: mu must be finite and not negative, got %g", mu)
	}
	p.Mu, p.Total = mu, p.Outcome+mu*p.Tool+p.Format
	return p, nil
}

// Score is ReTool's reward, which has no tool term.
func (retoolReward) Score(t Trajectory, o Outcome) (float64, error) {
	f := t.facts(o)
	if f.Success {
		return 1, f.Validate()
	}
	return math.Min(0, -1+retoolPerTurn*float64(f.Turns-1)), f.Validate()
}

// perTurn is min(1, step·n).
func perTurn(step float64, n int) float64 { return math.Min(1, step*float64(n)) }

// indicator is 1 where the condition holds.
func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// plusMinus is 1 where the condition holds, else −1.
func plusMinus(holds bool) float64 { return 2*indicator(holds) - 1 }
