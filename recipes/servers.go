package recipes

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// serversServe checks that the recipe's inference servers can be asked.
func serversServe(r *Recipe) string {
	all := r.Engine.Servers
	for i, s := range all {
		if field, text := s.Fault(); text != "" {
			return fmt.Sprintf("server %s: %s: %s", s.Name(), field, text)
		}
		if slices.ContainsFunc(all[:i], func(o servers.Server) bool {
			return o.Name() == s.Name() && o.Model == s.Model
		}) {
			return fmt.Sprintf("must name each server once, got %s twice", s.Name())
		}
	}
	return ""
}

// serversTrain checks that updates compare the trainer's log-probabilities with one another: those of a server differ
// from them by rounding at least.
func serversTrain(r *Recipe) string {
	return unless(len(r.Engine.Servers) == 0 || r.Loss.OldLogProbs == loss.OldRecomputed,
		"must be %s with engine.servers: the log-probabilities of another program differ from the trainer's, and "+
			"every importance ratio would be off from the start; %s has the stage logprobs compute the trainer's own",
		loss.OldRecomputed, loss.OldRecomputed)
}
