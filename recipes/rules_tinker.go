package recipes

import (
	"fmt"

	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// tinkerRules are what a recipe of engine.kind tinker needs, and what the Tinker API cannot do.
var tinkerRules = []rule{
	{at: "engine.tinker", only: trained, remote: true, check: func(r *Recipe) string { return r.Engine.tinkerFault() },
		doc: "there, with an address that begins with http:// or https:// and a reference as token"},
	{at: "engine.lora", only: trained, remote: true, doc: "there",
		ok:    func(r *Recipe) bool { return r.Engine.LoRA != nil },
		fault: "is required: a server trains an adapter, never the whole model"},
	{at: "engine.lora.alpha", only: trained, remote: true, is: fmt.Sprint(tinker.Alpha),
		why: fmt.Sprintf("the API has no field for it, and servers use %d", tinker.Alpha)},
	{at: "engine.lora.targets", only: trained, remote: true,
		ok:  func(r *Recipe) bool { return tinker.Choosable(r.Engine.LoRA.Targets) },
		doc: "all projections of attention, of the feed-forward layer, or both",
		fault: "must be those of attention (q_proj, k_proj, v_proj, o_proj), of the feed-forward layer (gate_proj, " +
			"up_proj, down_proj), or all seven: the API chooses no single one"},
	{at: "engine.deterministic", only: trained, remote: true, is: "false",
		why: "nothing is known of the order in which a server adds"},
	{at: "policy.checkpoint", only: trained, remote: true, doc: "there",
		ok: func(r *Recipe) bool { return r.Policy.Checkpoint != "" },
		fault: "is required: the server has the base already, and takes no weights; name the same model " +
			"here"},
	{at: "warm_start.steps", reads: "policy.checkpoint", only: trained, remote: true, is: "0",
		why: "a warm start trains the whole model, and a server trains an adapter alone"},
	{at: "rollout.temperature", only: trained, remote: true, is: "1",
		why: "a server computes log-probabilities of temperature 1 alone"},
	{at: "rollout.top_p", reads: "rollout.top_k rollout.min_p", only: trained, remote: true, ok: uncut, doc: "off",
		fault: wholeDistributions},
	{at: "evaluation.temperature", reads: "engine.servers", only: trained, remote: true,
		ok:    func(r *Recipe) bool { return r.Evaluation.Temperature == 1 || len(r.Engine.Servers) > 0 },
		doc:   "1 without engine.servers",
		fault: "must be 1: a server's log-probabilities of sampled tokens are those of temperature 1"},
	{at: "evaluation.top_p", reads: "engine.servers evaluation.top_k evaluation.min_p", only: trained, remote: true,
		ok:  func(r *Recipe) bool { return !r.Evaluation.Truncation().Active() || len(r.Engine.Servers) > 0 },
		doc: "off without engine.servers", fault: wholeDistributions},
	{at: "loss.entropy", only: trained, remote: true, doc: "off", fault: noEntropies,
		ok: func(r *Recipe) bool { return !r.Method().Needs().CurrentEntropies }},
	{at: "advantage.name", reads: "loss", only: trained, remote: true, doc: "none that reads entropies",
		ok:    func(r *Recipe) bool { return !r.Method().Needs().Entropies },
		fault: "{advantage.name} reads entropies: " + noEntropies},
	{at: "advantage.name", reads: "loss", only: trained, remote: true, doc: "none that reads a critic's values",
		ok:    func(r *Recipe) bool { return !r.Method().Needs().Values },
		fault: "{advantage.name} reads a critic's values, and a server has no value heads"},
	{at: "token_outputs.entropies", only: trained, remote: true, set: true, doc: "false", fault: noEntropies,
		ok: func(*Recipe) bool { return false }},
	{at: "optimizer.name", only: trained, remote: true, is: optimizer.AdamWName, why: "the API has no other"},
	{at: "optimizer.weight_decay", only: trained, remote: true, is: "0",
		why: "servers decay what they keep next to the adapter too, the adapters of others among it"},
	{at: "schedule.stages", only: trained, remote: true, doc: "none that resets the optimiser",
		ok: func(r *Recipe) bool {
			return r.Schedule.OptimizerReset(r.Steps) == 0
		},
		fault: "reset_optimizer: a server loads weights together with the optimiser's state"},
}

const (
	noEntropies        = "a server returns log-probabilities of the given tokens, no entropies of whole distributions"
	wholeDistributions = "top_p, top_k and min_p have no place: a server's log-probabilities of sampled tokens are " +
		"those of the whole distribution"
)

// tinkerFault checks that the recipe names a server that can be asked.
func (e Engine) tinkerFault() string {
	if e.Tinker == nil {
		return "is required: it names the server"
	}
	return ofField(e.Tinker.Fault())
}
