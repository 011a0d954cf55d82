package reward

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Scorer turns a trajectory and the comparison of its answer into a reward. It is a value without state: its fields are
// the parameters that a recipe sets.
type Scorer interface {
	// Score returns the trajectory's reward.
	Score(t Trajectory, o Outcome) (float64, error)
}

// Trajectory is what rewards may read of one trajectory.
type Trajectory struct {
	Text string // all that the policy and its tools wrote
	Gold string // the reference answer
	// Golds are the right answers of a question whose answers are compared by their words; nil of all others.
	Golds    []string
	Answer   string // the final answer that was extracted; "" without one
	Answered bool   // there is a final answer
	Facts    Facts  // turns and calls; Success is filled in from the outcome
	// SourceReward and SourceSuccess are what the source of an imported trajectory said; nil of the others.
	SourceReward  *float64
	SourceSuccess *bool
	ToolWeight    float64 // μ of the step, the weight of a tool term
	// Judgement is a judge's verdict; "" = there is no judge, and exact match replaces it.
	Judgement Judgement
	// Played is what an interactive environment made of the trajectory; nil where the task is a question.
	Played *Played
	// Function is the result of a user's function; nil of other rewards.
	Function *Result
}

// golds are the right answers.
func (t Trajectory) golds() []string {
	if t.Golds == nil {
		return []string{t.Gold}
	}
	return t.Golds
}

// byWords compares the answer with the golds by exact match.
func (t Trajectory) byWords() Outcome {
	if !t.Answered {
		return Outcome{Verdict: NoAnswer}
	}
	return verdictOf(ExactMatch(t.Answer, t.Golds), Exact).outcome(t.Answer)
}

// Played is what an interactive environment made of a trajectory.
type Played struct {
	Paid   float64 // over all turns
	Solved bool    // it ended at the task's goal
	Acted  int     // turns whose action the environment knows
}

// outcome is the environment's verdict.
func (p Played) outcome() Outcome {
	if p.Solved {
		return Solved.outcome("")
	}
	return Unsolved.outcome("")
}

// facts are the trajectory's, with the success that an outcome says.
func (t Trajectory) facts(o Outcome) Facts {
	f := t.Facts
	f.Success = o.Verdict.Correct()
	return f
}

// Declaration is what a reward states about itself. The file of the reward holds it.
type Declaration struct {
	// Choice holds name, source and parameters. Its Settings are the Scorer with the defaults of its parameters.
	choice.Choice
	// Compare says how the answer compares with the gold; nil = Grade, which other rewards take their success from.
	Compare    func(Trajectory, Options) Outcome
	ReadsTurns bool // reads Facts, which records of early versions do not hold
	FromSource bool // is the number that an imported trajectory's source gave
	ToolTerm   bool // has a term for tool calls that the schedule's μ weighs
	FromText   bool // reads the final answer as a protocol found it, which needs no box
	Tested     bool // the answer is a program, and committed verdicts of its tests settle the outcome
	Called     bool // is the committed result of a user's function (Function); it fits every environment that samples
}

// Declarations lists the rewards that recipes can name, in the order of the documents. A new reward is one more line
// here.
func Declarations() []Declaration { return slices.Clone(declarations) }

var declarations = []Declaration{
	rstar2Outcome,
	referenceReward,
	spear,
	spearMath,
	spearMathQwen3,
	spearAgent,
	retool,
	prsShort,
	prsLong,
	prsGeneral,
	exactMatch,
	wordF1,
	deepResearch,
	arlarena,
	dapoStrict,
	unitTests,
	function,
	lastNumber,
	calls,
}

// Declared returns the declaration of a reward.
func Declared(name string) (Declaration, bool) { return choice.Declared(declarations, name) }

// New makes the reward of that name with the parameters that a recipe sets; the others have their defaults.
func New(name string, params choice.Params) (Scorer, error) {
	d, err := choice.Find("reward", declarations, name)
	if err != nil {
		return nil, err
	}
	return d.New(params)
}

// New makes the declared reward with the parameters that a recipe sets; the others have their defaults.
func (d Declaration) New(params choice.Params) (Scorer, error) {
	settings, err := d.Set("reward", params)
	if err != nil {
		return nil, err
	}
	s, ok := settings.(Scorer)
	if !ok {
		return nil, fmt.Errorf("reward %s: its settings %T score nothing", d.Name, settings)
	}
	return s, nil
}

// Outcome compares a trajectory's answer with its gold by strings, values and lists, or with its golds by words. In an
// interactive environment it is the environment's verdict, and under a user's function that of the function.
func (d Declaration) Outcome(t Trajectory, o Options) Outcome {
	switch {
	case t.Function != nil:
		return Played{Solved: t.Function.Success}.outcome()
	case t.Played != nil:
		return t.Played.outcome()
	case t.Golds != nil:
		return t.byWords()
	}
	if d.Compare != nil {
		return d.Compare(t, o)
	}
	return Grade(t.Text, t.Gold, o)
}

// outcomeReward is the reward that the comparison itself gives.
type outcomeReward struct{}

// Score is the outcome's reward.
func (outcomeReward) Score(_ Trajectory, o Outcome) (float64, error) { return o.Reward, nil }
