package reward

import (
	"cmp"
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/schedule"
)

// SPEAR's composite reward:
//
//	R      = R_outcome + μ(t)·R_tool + R_format
//	R_outcome = +1 if the task is solved, else −1
//	R_tool    = min(1, 0.1·n), n = turns whose tool call parsed, or whose action the world knows
//	R_format  = 0.1 iff every turn is well wrapped, else 0
//	μ(t)      = ½(cos(πt/T_decay) + 1) for t ≤ T_decay, else 0, t = the global training step
//
// Source: SPEAR, equations 17–21. Departures: none in the
// variant of the paper; the others are the forms of its release:
//
//	spear_math        ±1 + μ·min(1, 0.1n); no format term
//	spear_math_qwen3  wrong: −1 + μ·min(1, 0.1n); right: 1 + μ·1[n > 0]
//	spear_agent       10·solved + μ·min(1, 0.1·turns) − 0.1·(malformed turns): all turns count
//	retool            right: 1; wrong: min(0, −1 + 0.1·(messages − 2)/2); the baseline
//
// Where rows are turns, spear_agent's penalty belongs to the rows of the malformed turns (see
// TurnRewards.Rows); Total holds their sum.

var spear = Declaration{
	Choice: choice.Choice{
		Name: "spear", Doc: "±1 + μ·min(1, 0.1·calls) + 0.1 if every turn is well wrapped", Source: "SPEAR eqs 17–20",
		Settings: spearReward{ToolStep: toolRewardPerTurn, FormatBonus: formatReward},
		Reads:    choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true, ToolTerm: true,
}

var spearMath = Declaration{
	Choice: choice.Choice{
		Name: "spear_math", Doc: "±1 + μ·min(1, 0.1·turns with calls)", Source: "SPEAR's released code, mathematics",
		Settings: spearTool{ToolStep: toolRewardPerTurn, variant: SPEARMath},
		Reads:    choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true, ToolTerm: true,
}

var spearMathQwen3 = Declaration{
	Choice: choice.Choice{
		Name: "spear_math_qwen3", Doc: "spear_math where a right answer earns the whole tool term with one call",
		Source:   "SPEAR's released code, Qwen3",
		Settings: spearTool{ToolStep: toolRewardPerTurn, variant: SPEARMathQwen3},
		Reads:    choice.Reading("overlong", "symbolic"),
	},
	ReadsTurns: true, ToolTerm: true,
}

var spearAgent = Declaration{
	Choice: choice.Choice{
		Name: "spear_agent", Doc: "10·won + μ·min(1, 0.1·turns), less 0.1 for an invalid turn",
		Source: "SPEAR's released code, agents", Settings: spearTool{ToolStep: toolRewardPerTurn, variant: SPEARAgent},
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

// spearReward holds the parameters of the paper's form in a recipe.
type spearReward struct {
	ToolStep    float64 `json:"tool_step" min:"0" max:"1000" doc:"the tool term is min(1, tool_step × calls), times μ of the schedule"`
	FormatBonus float64 `json:"format_bonus" min:"0" max:"1000" doc:"added where every turn is well wrapped"`
}

// The variants of the release have the tool term alone, or no parameter.
type (
	spearTool struct {
		ToolStep float64 `json:"tool_step"`
		variant  SPEARVariant
	}
	retoolReward struct{}
)

// Score is the paper's form. A step or a bonus of 0 leaves its term out.
func (s spearReward) Score(t Trajectory, o Outcome) (float64, error) {
	return t.spear(SPEAR{
		Variant: SPEARComposite, ToolStep: s.ToolStep, WithoutTool: s.ToolStep == 0,
		FormatBonus: s.FormatBonus, WithoutFormat: s.FormatBonus == 0,
	}, o)
}

// Score is the release's form for mathematics, for Qwen3 or for agents.
func (s spearTool) Score(t Trajectory, o Outcome) (float64, error) {
	return t.spear(SPEAR{Variant: s.variant, ToolStep: s.ToolStep, WithoutTool: s.ToolStep == 0}, o)
}

// Score is ReTool's reward, which has no tool term.
func (retoolReward) Score(t Trajectory, o Outcome) (float64, error) {
	return t.spear(SPEAR{Variant: ReTool, WithoutTool: true}, o)
}

// spear is a variant's reward at the step's weight of the tool term.
func (t Trajectory) spear(s SPEAR, o Outcome) (float64, error) {
	parts, err := s.Weigh(t.facts(o), t.ToolWeight)
	return parts.Total, err
}

// SPEARVariant names a form of the reward.
type SPEARVariant string

// The variants.
const (
	SPEARComposite SPEARVariant = "spear_composite"
	SPEARMath      SPEARVariant = "spear_math"
	SPEARMathQwen3 SPEARVariant = "spear_math_qwen3"
	SPEARAgent     SPEARVariant = "spear_agent"
	ReTool         SPEARVariant = "retool"
)

const (
	toolRewardPerTurn   = 0.1
	formatReward        = 0.1
	agentSuccess        = 10
	agentFormatPenalty  = 0.1
	retoolPerTurn       = 0.1
	defaultDecay        = 200
	messagesWithoutCall = 2 // the prompt and its answer
)

// SPEAR is the composite reward as one choice of a method. The zero value is the paper's form.
type SPEAR struct {
	// Variant is spear_composite where it is "".
	Variant     SPEARVariant `enum:"spear_composite|spear_math|spear_math_qwen3|spear_agent|retool"`
	Decay       int          `min:"0"` // T_decay in training steps; 0 means 200
	WithoutTool bool         // no tool-call reward, as the Dr.BoT baseline has it
	ToolStep    float64      `min:"0"` // of the tool term, min(1, ToolStep·n); 0 means 0.1
	FormatBonus float64      `min:"0"` // R_format of the paper's form; 0 means 0.1
	// WithoutFormat leaves R_format out of the paper's form.
	WithoutFormat bool
}

// SPEARParts are the terms of one reward: Total = Outcome + Mu·Tool + Format.
type SPEARParts struct {
	Outcome, Mu, Tool, Format, Total float64
}

// Validate names a field out of range.
func (s SPEAR) Validate() error { return choice.Check("SPEAR reward: ", s) }

// Reward gives the reward of a trajectory at a training step, 0 ≤ step. Facts read: Success,
// Turns, ToolTurns, MalformedTurns and, for retool, Messages. A trajectory without turns is not
// well wrapped.
func (s SPEAR) Reward(f Facts, step int) (SPEARParts, error) {
	if step < 0 {
		return SPEARParts{}, fmt.Errorf("SPEAR reward: step must not be negative, got %d", step)
	}
	return s.Weigh(f, schedule.Mu{Horizon: cmp.Or(max(0, s.Decay), defaultDecay)}.At(step))
}

// Weigh is Reward with a given weight μ of the tool term instead of the paper's decay.
func (s SPEAR) Weigh(f Facts, mu float64) (SPEARParts, error) {
	if err := s.Validate(); err != nil {
		return SPEARParts{}, err
	}
	if err := f.Validate(); err != nil {
		return SPEARParts{}, err
	}
	if !(mu >= 0) || math.IsInf(mu, 0) {
		return SPEARParts{}, fmt.Errorf("SPEAR reward: mu must be finite and not negative, got %g", mu)
	}
	p := s.terms(f)
	p.Mu = mu
	if s.WithoutTool || s.Variant == ReTool {
		p.Mu = 0
	}
	p.Total = p.Outcome + p.Mu*p.Tool + p.Format
	return p, nil
}

// terms gives outcome, tool and format reward.
func (s SPEAR) terms(f Facts) SPEARParts {
	p := SPEARParts{Outcome: -1, Tool: s.perTurn(f.ToolTurns)}
	if f.Success {
		p.Outcome = 1
	}
	switch s.Variant {
	case SPEARMath:
	case SPEARMathQwen3:
		if f.Success {
			p.Tool = indicator(f.ToolTurns > 0)
		}
	case SPEARAgent:
		p.Outcome = agentSuccess * indicator(f.Success)
		p.Tool = s.perTurn(f.Turns)
		p.Format = -agentFormatPenalty * float64(f.MalformedTurns)
	case ReTool:
		p.Tool = 0
		if !f.Success {
			p.Outcome = math.Min(0, -1+retoolPerTurn*float64(f.messages()-messagesWithoutCall)/2)
		}
	default:
		if !s.WithoutFormat {
			p.Format = cmp.Or(s.FormatBonus, formatReward) * indicator(f.wellFormed())
		}
	}
	return p
}

// perTurn is min(1, step·n).
func (s SPEAR) perTurn(n int) float64 {
	return math.Min(1, cmp.Or(s.ToolStep, toolRewardPerTurn)*float64(n))
}

// indicator is 1 where the condition holds.
func indicator(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
