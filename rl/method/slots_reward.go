package method

// rewardSlots are what a trajectory is worth.
func rewardSlots() []Slot {
	spear := params("tool_step", "format_bonus", "symbolic")
	tools := params("tool_step", "symbolic")
	return []Slot{
		{
			Name: "reward.name", Doc: "the reward",
			Choices: []Choice{
				{Name: "rstar2_outcome", Doc: "1 if the box inside <answer> equals the gold answer, else 0", Source: "rStar2 §2.2", Params: params("fallback", "overlong", "symbolic")},
				{Name: "math_answer", Doc: "the same comparison on an imported solution's final answer", Source: "rStar2 §2.2", Params: params("symbolic")},
				{Name: "reference", Doc: "the number that an imported conversation's source gave it", Source: "the source"},
				{Name: "spear", Doc: "±1 + μ·min(1, 0.1·calls) + 0.1 if every turn is well wrapped", Source: "SPEAR eqs 14–17", Params: append(params("overlong"), spear...)},
				{Name: "spear_math", Doc: "±1 + μ·min(1, 0.1·turns with calls)", Source: "SPEAR's released code, mathematics", Params: append(params("overlong"), tools...)},
				{Name: "spear_math_qwen3", Doc: "spear_math where a right answer earns the whole tool term with one call", Source: "SPEAR's released code, Qwen3", Params: append(params("overlong"), tools...)},
				{Name: "spear_agent", Doc: "10·won + μ·min(1, 0.1·turns), less 0.1 for an invalid turn", Source: "SPEAR's released code, agents", Params: params("tool_step")},
				{Name: "retool", Doc: "1, or −1 softened by 0.1 for each two turns, at most 0", Source: "ReTool (Feng et al. 2025) in SPEAR's released code", Params: params("overlong", "symbolic")},
				{Name: "prs_short", Doc: "process + format, plus short BLEU where the process is whole", Source: "PRS eq 13", Params: params("smoothed_bleu")},
				{Name: "prs_long", Doc: "process + format, then the judge's verdict, then BLEU", Source: "PRS eq 14", Params: params("smoothed_bleu", "judge")},
				{Name: "prs_general", Doc: "process, judge and answer as gated stages behind a logistic", Source: "PRS eqs 15–16", Params: params("smoothed_bleu", "judge", "process_gate", "judge_gate")},
				{Name: "exact_match", Doc: "1 if the normalised answer equals a gold answer", Source: "SQuAD (Rajpurkar et al. 2016); Search-R1"},
				{Name: "f1", Doc: "overlap of the normalised answer's words with a gold answer's", Source: "SQuAD (Rajpurkar et al. 2016)"},
				{Name: "deep_research", Doc: "F1 of the boxed answer, 0.1 for using both tools, −1 if malformed", Source: "AEPO's released code; ARPO §3.3"},
				{Name: "arlarena", Doc: "the environment's own outcome", Source: "ARLArena §3.2", Params: params("symbolic")},
				{Name: "dapo_strict", Doc: "±1: the box in the last characters equals the gold text", Source: "DAPO (Yu et al. 2025); SPEAR's released code", Params: params("overlong")},
			},
		},
		{
			Name: "reward.judge", Doc: "who compares a long answer with the reference",
			Choices: []Choice{
				{Name: "exact", Doc: "the normalised texts are equal", Source: "SQuAD"},
				{Name: "server", Doc: "a language model's Match or Mismatch", Source: "PRS §3.2", Planned: "no client for a judge's server yet"},
			},
		},
		switchSlot("reward.overlong", "a penalty that grows towards the limit of tokens", "DAPO eq 13", ""),
	}
}
