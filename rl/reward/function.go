package reward

import (
	"errors"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// The reward of a user's function:
//
//	r = f(trajectory)
//
// Source: the user. Departures: none. The function is Python and is called outside this package, in a stage before
// scoring; its committed result is Trajectory.Function. A trajectory on which it raised, hung or returned no finite
// number is excluded before it comes here.

var function = Declaration{
	Choice: choice.Choice{
		Name: "python", Doc: "the result of the user's own function in Python",
		Source:   "reward functions as TRL and verifiers take them",
		Settings: Function{Interpreter: "ROPEWALK_PYTHON", SuccessFrom: 1, Seconds: 30},
		Reads:    choice.Reading("overlong"),
	},
	Called: true,
}

// Function is the reward of a user's function, with what is needed to call it.
type Function struct {
	Module      string  `json:"module" doc:"the function, as package:name. It is called with a trajectory (a dictionary) and kwargs, and returns a number, or a pair of a number and whether the task is solved"`
	Kwargs      string  `json:"kwargs" default:"\"\"" doc:"further arguments of each call, a JSON object; empty = none"`
	Path        string  `json:"path" doc:"absolute path of a folder that modules are also loaded from; every worker reads it"`
	Digest      string  `json:"code_sha256" quiet:"true" default:"\"\"" doc:"digest that the function's code must have, as a run records it: the SHA-256 of the module's file, or of the lines for all files that it imports from its own folder; empty = any"`
	Interpreter string  `json:"interpreter" doc:"name of the environment variable that names the worker's Python interpreter; python3 if the variable is not set"`
	Batch       bool    `json:"batch" doc:"the function is called with a list of trajectories and returns a list"`
	Seconds     float64 `json:"seconds" min:"0.01" max:"3600" doc:"time limit of a call"`
	SuccessFrom float64 `json:"success_from" min:"-1000000000" max:"1000000000" doc:"result from which a trajectory is a success, if the function does not say so itself"`
}

// Result is the committed result of a user's function.
type Result struct {
	Score   float64
	Success bool
}

// Score implements Scorer.
func (Function) Score(t Trajectory, _ Outcome) (float64, error) {
	if t.Function == nil {
		return 0, errors.New("the function's result is missing")
	}
	return t.Function.Score, nil
}

// Result is a result of the function, which may say whether the task is solved.
func (f Function) Result(score float64, success *bool) Result {
	r := Result{Score: score, Success: score >= f.SuccessFrom}
	if success != nil {
		r.Success = *success
	}
	return r
}
