package method

import "slices"

// lossSlots are the policy losses and how their tokens become one number.
func lossSlots() []Slot {
	sequence := with("clip_low", "0.003", "clip_high", "0.004", "aggregation", "seq-mean-token-mean")
	symmetric := with("clip_low", "0.2", "clip_high", "0.2")
	higher := with("clip_low", "0.2", "clip_high", "0.28")
	plain := params("aggregation")
	covariance := slices.Concat(plain, higher, params("cov_low", "cov_high", "cov_scope"), with("cov_ratio", "0.0002"))
	return []Slot{
		{
			Name: "loss.name", Doc: "the policy loss", Dimension: ImportanceClip,
			Choices: []Choice{
				{Name: "ppo_clip", Doc: "the clipped surrogate of PPO, with clip-higher and dual clip", Source: "PPO (Schulman et al. 2017); DAPO (Yu et al. 2025); rStar2 eq 1", Params: slices.Concat(plain, higher, params("dual_clip"))},
				{Name: "cispo", Doc: "the clipped ratio as a constant weight of the log-probability: no token loses its gradient", Source: "MiniMax-M1 (2025); ARLArena S8", Params: slices.Concat(plain, with("clip_low", "1", "clip_high", "0.2"), params("mask"))},
				{Name: "sapo", Doc: "a sigmoid gate on the ratio in the place of the clip", Source: "SAPO (2025); ARLArena Table 1", Params: slices.Concat(plain, params("tau_positive", "tau_negative"))},
				{Name: "gspo", Doc: "one clipped ratio for a row: the geometric mean of its tokens'", Source: "GSPO (Zheng et al. 2025)", Params: sequence},
				{Name: "gspo_token", Doc: "the row's ratio, with advantages that may differ by token", Source: "GSPO (Zheng et al. 2025), token form", Params: sequence},
				{Name: "gpg", Doc: "the plain policy gradient −A·logp, without a ratio", Source: "GPG (Chu et al. 2025)", Params: plain},
				{Name: "gppo", Doc: "PPO's clip whose clipped tokens keep a bounded gradient", Source: "GPPO (Su et al. 2025)", Params: slices.Concat(plain, symmetric)},
				{Name: "ce_gppo", Doc: "gppo with a share of the kept gradient for each side", Source: "CE-GPPO (Su et al. 2025)", Params: slices.Concat(plain, symmetric, params("beta1", "beta2"))},
				{Name: "aepo_clip", Doc: "keeps the gradient above the upper bound alone", Source: "AEPO eqs 8, 9, 14", Params: slices.Concat(plain, symmetric, params("dual_clip"))},
				{Name: "clip_cov", Doc: "ppo_clip without gradient on a few of the most covariant tokens", Source: "Clip-Cov (Cui et al. 2025); SPEAR eq 16", Params: covariance, Needs: []Need{NeedMinibatch}},
				{Name: "kl_cov", Doc: "the plain ratio, with a penalty on the most covariant tokens", Source: "KL-Cov (Cui et al. 2025)", Params: slices.Concat(plain, params("cov_coefficient"), with("cov_ratio", "0.002")), Needs: []Need{NeedMinibatch}},
			},
		},
		{
			Name: "loss.aggregation", Doc: "how per-token losses become one number", Dimension: LossAggregation,
			Choices: []Choice{
				{Name: "token-mean", Doc: "Σℓm / ΣT: every token weighs alike", Source: "DAPO; ARLArena Table 1"},
				{Name: "seq-mean-token-mean", Doc: "the mean over rows of each row's mean", Source: "GRPO; ARLArena's GRPO_ST"},
				{Name: "seq-mean-token-sum", Doc: "the mean over rows of each row's sum", Source: "verl"},
				{Name: "seq-mean-token-sum-norm", Doc: "seq-mean-token-sum over the greatest length allowed", Source: "Dr.GRPO; ARLArena S5"},
				{Name: "norm_legacy", Doc: "seq-mean-token-sum-norm without the mean over rows", Source: "releases of verl until January 2026; SPEAR's"},
				{Name: "token-sum", Doc: "ΣΣℓm", Source: "REINFORCE"},
			},
		},
	}
}

// termSlots are what stands beside the policy loss.
func termSlots() []Slot {
	return []Slot{
		{
			Name: "loss.old_log_probs", Doc: "where the ratio's denominator comes from",
			Choices: []Choice{
				{Name: "rollout", Doc: "what the engine that sampled reported", Source: "PPO"},
				{Name: "recompute", Doc: "the trainer's own, before the step's first update", Source: "verl; every paper's runs", Needs: []Need{NeedOldLogProbs}},
			},
		},
		switchSlot("loss.sequence_mask", "rows with a negative advantage that the policy has moved away from are left out", "ARLArena Table 1, M_i", ImportanceClip),
		switchSlot("loss.tis", "each token's loss times min(exp(old − rollout), cap)", "truncated importance sampling (Yao et al. 2025)", "", NeedOldLogProbs, NeedRolloutLogProbs),
		{
			Name: "loss.kl.in", Doc: "where the penalty on the distance from the reference enters",
			Choices: []Choice{
				{Name: "loss", Doc: "a term of the loss", Source: "GRPO; ARLArena §3.1; PRS", Params: append(params("controller", "target", "horizon"), with("estimator", "k3")...), Needs: []Need{NeedReference}},
				{Name: "reward", Doc: "taken from each token's reward", Source: "PPO for language models (Ziegler et al. 2019)", Params: append(params("controller", "target", "horizon"), with("estimator", "k1")...), Needs: []Need{NeedReference}},
			},
		},
		{
			Name: "loss.kl.controller", Doc: "how the penalty's coefficient moves",
			Choices: []Choice{
				{Name: "fixed", Doc: "not at all", Source: "GRPO"},
				{Name: "adaptive", Doc: "towards a target divergence of the policy that sampled", Source: "Ziegler et al. 2019", Params: params("target", "horizon")},
			},
		},
		switchSlot("loss.entropy", "− c·agg(H) in the loss", "A3C (Mnih et al. 2016)", "", NeedCurrentEntropies),
		switchSlot("loss.reference", "the reference follows the policy", "rStar2 §4.2 (between stages)", ""),
		switchSlot("loss.value", "a critic, with its clipped loss", "PPO (Schulman et al. 2017)", "", NeedValues),
	}
}
