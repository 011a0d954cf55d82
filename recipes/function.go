package recipes

import (
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// FunctionSettings returns what is needed to call a user's reward function.
func FunctionSettings(f reward.Function) remote.FunctionSettings {
	return remote.FunctionSettings{Module: f.Module, Kwargs: f.Kwargs, Path: f.Path, Interpreter: f.Interpreter,
		Batch: f.Batch, Digest: f.Digest, Seconds: f.Seconds}
}

// Function returns the recipe's reward as a user's function; ok is false if it is another reward.
func (r *Recipe) Function() (f reward.Function, ok bool) {
	scorer, err := reward.New(r.Reward.Name, r.Reward.Params)
	if err != nil {
		return f, false
	}
	f, ok = scorer.(reward.Function)
	return f, ok
}

// functionFits checks the settings of a user's reward function.
func functionFits(r *Recipe) string {
	f, ok := r.Function()
	if !ok {
		return ""
	}
	return ofField(FunctionSettings(f).Fault())
}
