package recipes

import "github.com/ropewalk/ropewalk/env/remote"

// Function returns what is needed to call the user's reward function; ok is false if the reward is another one.
func (r *Recipe) Function() (s remote.FunctionSettings, ok bool) {
	f, ok := r.Reward.Function()
	return remote.FunctionSettings{Module: f.Module, Kwargs: f.Kwargs, Path: f.Path, Interpreter: f.Interpreter,
		Batch: f.Batch, Digest: f.Digest, Seconds: f.Seconds}, ok
}

// functionFits checks the settings of a user's reward function.
func functionFits(r *Recipe) string {
	f, ok := r.Function()
	if !ok {
		return ""
	}
	return ofField(f.Fault())
}
