package method

import (
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// Reward chooses what a trajectory is worth.
type Reward struct {
	Name string `json:"name" required:"true" doc:"the reward"`
	// Params are the parameters of the reward. Each reward declares its own in rl/reward.
	Params choice.Params `params:"reward.name"`
	// Fallback grades the whole text if there is no <answer>, as rStar2's released code does.
	Fallback bool `json:"fallback" default:"false" only:"trained" quiet:"true" doc:"grade the last box of the whole text when there is no <answer>"`
	// Symbolic asks the sandbox's sympy, in a separate stage, about answers that strings and values cannot decide.
	Symbolic bool      `json:"symbolic" default:"false" quiet:"true" doc:"have sympy in the sandbox compare answers that strings, values and lists find different; the verdicts are committed before scoring (stage grade)"`
	Judge    string    `json:"judge" default:"exact" doc:"who compares a long answer with the reference"`
	Overlong *Overlong `json:"overlong" doc:"DAPO's soft penalty on length; null or absent = off"`
}

// Declaration returns what the reward states about itself; of an unknown one, the zero value.
func (r Reward) Declaration() reward.Declaration {
	d, _ := reward.Declared(r.Name)
	return d
}

// Function returns the reward as a user's function; ok is false if it is another reward.
func (r Reward) Function() (f reward.Function, ok bool) {
	scorer, _ := reward.New(r.Name, r.Params) // a reward with a fault is no function
	f, ok = scorer.(reward.Function)
	return f, ok
}

// Graded reports whether the reward reads committed verdicts on answers, by sympy or by a program's tests.
func (r Reward) Graded() bool { return r.Symbolic || r.Declaration().Tested }

// Called reports whether the reward is the committed result of a user's function.
func (r Reward) Called() bool { return r.Declaration().Called }

// JudgeServer is the choice of reward.judge that asks a language model.
const JudgeServer = "server"

// Judged reports whether the reward reads a judge's committed verdicts.
func (r Reward) Judged() bool {
	scorer, _ := reward.New(r.Name, r.Params) // a reward with a fault asks no judge
	judged, ok := scorer.(reward.Judged)
	return ok && (r.Judge == JudgeServer || judged.ByJudge())
}

// Overlong takes (length − (limit − Buffer))/Buffer·Factor from a response longer than limit − Buffer.
type Overlong struct {
	Buffer int     `json:"buffer" required:"true" min:"1" max:"1048576" doc:"tokens before the limit over which the penalty grows"`
	Factor float64 `json:"factor" default:"1" above:"0" max:"1000" doc:"penalty at the limit"`
}
