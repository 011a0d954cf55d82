package recipes

import (
	"fmt"

	"github.com/ropewalk/ropewalk/policy/tinker"
)

// tinkerRules are what a recipe of engine.kind tinker needs, and what the Tinker API cannot do.
var tinkerRules = []combination{
	{
		at: "engine.tinker", reads: []string{"engine.kind"}, only: trained,
		doc: "there for kind tinker, with an address that begins with http:// or https:// and a reference as token",
		check: func(r *Recipe) string {
			if !r.Engine.Declaration().Remote {
				return ""
			}
			if r.Engine.Tinker == nil {
				return "is required for engine.kind tinker: it names the server"
			}
			if field, text := r.Engine.Tinker.Fault(); text != "" {
				return fmt.Sprintf("%s: %s", field, text)
			}
			return ""
		},
	},
	atServer("engine.lora", "there for kind tinker", func(r *Recipe) string {
		return unless(r.Engine.LoRA != nil, "is required: a server trains an adapter, never the whole model")
	}, "engine.kind"),
	atServer("engine.lora.alpha", "32 for kind tinker", func(r *Recipe) string {
		l := r.Engine.LoRA
		return unless(l == nil || l.Alpha == tinker.Alpha,
			"must be %d: the API has no field for it, and servers use %d", tinker.Alpha, tinker.Alpha)
	}, "engine.kind"),
	atServer("engine.lora.targets", "all projections of attention, of the feed-forward layer, or both, for kind tinker",
		func(r *Recipe) string {
			l := r.Engine.LoRA
			return unless(l == nil || tinker.Choosable(l.Targets), "must be those of attention (q_proj, k_proj, "+
				"v_proj, o_proj), of the feed-forward layer (gate_proj, up_proj, down_proj), or all seven: the API "+
				"chooses no single one")
		}, "engine.kind"),
	atServer("engine.deterministic", "false for kind tinker", func(r *Recipe) string {
		return unless(!r.Engine.Deterministic, "must be false: nothing is known of the order in which a server adds")
	}, "engine.kind"),
	atServer("policy.checkpoint", "there for kind tinker", func(r *Recipe) string {
		return unless(r.Policy.Checkpoint != "", "is required: the server has the base already, and takes no weights; "+
			"name the same model here")
	}, "engine.kind"),
	atServer("warm_start.steps", "0 for kind tinker", func(r *Recipe) string {
		return unless(r.WarmStart.Steps == 0, "must be 0: a warm start trains the whole "+
			"model, and a server trains an adapter alone")
	}, "engine.kind", "policy.checkpoint"),
	atServer("rollout.temperature", "1 for kind tinker", func(r *Recipe) string {
		return unless(r.Rollout.Temperature == 1,
			"must be 1: a server computes log-probabilities of temperature 1 alone")
	}, "engine.kind"),
	atServer("rollout.top_p", "off for kind tinker", cuts(func(r *Recipe) bool {
		return r.Rollout.Truncation().Active()
	}), "engine.kind", "rollout.top_k", "rollout.min_p"),
	atServer("evaluation.temperature", "1 for kind tinker without engine.servers", func(r *Recipe) string {
		return unless(r.Evaluation.Temperature == 1 || len(r.Engine.Servers) > 0,
			"must be 1: a server's log-probabilities of sampled tokens are those of temperature 1")
	}, "engine.kind", "engine.servers"),
	atServer("evaluation.top_p", "off for kind tinker without engine.servers", cuts(func(r *Recipe) bool {
		return r.Evaluation.Truncation().Active() && len(r.Engine.Servers) == 0
	}), "engine.kind", "engine.servers", "evaluation.top_k", "evaluation.min_p"),
	atServer("loss.entropy", "off for kind tinker", func(r *Recipe) string {
		return unless(!r.Method().Needs().CurrentEntropies, noEntropies)
	}, "engine.kind"),
	atServer("advantage.name", "none that reads entropies or values for kind tinker", func(r *Recipe) string {
		n := r.Method().Needs()
		switch {
		case n.Entropies:
			return r.Advantage.Name + " reads entropies: " + noEntropies
		case n.Values:
			return r.Advantage.Name + " reads a critic's values, and a server has no value heads"
		}
		return ""
	}, "engine.kind", "loss"),
	atServer("token_outputs.entropies", "false for kind tinker", func(r *Recipe) string {
		return unless(r.TokenOutputs == nil || !r.TokenOutputs.Entropies,
			noEntropies)
	}, "engine.kind"),
	atServer("optimizer.weight_decay", "0 for kind tinker", func(r *Recipe) string {
		return unless(r.Optimizer.WeightDecay == 0, "must be 0: servers decay what they keep next to the adapter too, "+
			"the adapters of others among it")
	}, "engine.kind"),
	atServer("schedule.stages", "none that resets the optimiser for kind tinker", func(r *Recipe) string {
		for _, s := range r.Schedule.Stages() {
			if s.ResetOptimizer {
				return "reset_optimizer: a server loads weights together with the optimiser's state"
			}
		}
		return ""
	}, "engine.kind"),
}

const noEntropies = "a server returns log-probabilities of the given tokens, no entropies of whole distributions"

// atServer is a rule for engine.kind tinker.
func atServer(at, doc string, check func(*Recipe) string, reads ...string) combination {
	return combination{at: at, reads: reads, only: trained, doc: doc, check: func(r *Recipe) string {
		if !r.Engine.Declaration().Remote {
			return ""
		}
		if text := check(r); text != "" {
			return "with engine.kind tinker: " + text
		}
		return ""
	}}
}

// cuts is the rule of a distribution that is cut.
func cuts(active func(*Recipe) bool) func(*Recipe) string {
	return func(r *Recipe) string {
		return unless(!active(r), "top_p, top_k and min_p have no place: a server's log-probabilities of sampled "+
			"tokens are those of the whole distribution")
	}
}
