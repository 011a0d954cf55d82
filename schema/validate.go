package schema

import "math"

// Validate implements Row.
func (r PromptRow) Validate() error {
	var c checks
	c.group(r.GroupID)
	c.present("problem_id", r.ProblemID)
	c.count("level", int64(r.Level))
	c.tokens(r.TokenIDs)
	return c.err
}

// Validate implements Row.
func (r TurnRow) Validate() error {
	var c checks
	n := len(r.TokenIDs)
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.count("turn", int64(r.Turn))
	c.count("tool_calls", int64(r.ToolCalls))
	c.line("excluded", r.Excluded)
	if r.Excluded == nil {
		c.oneOf("finish", r.Finish, "stop", "length")
	} else {
		c.empty("finish", r.Finish, "if no response was written")
		if int(r.ContextTokens) != n {
			c.fail("context_tokens", "must be all %d tokens of the turn if no response was written, got %d", n,
				r.ContextTokens)
		}
	}
	if r.ContextTokens < 0 || int(r.ContextTokens) > n {
		c.fail("context_tokens", "must lie between 0 and the %d tokens of the turn, got %d", n, r.ContextTokens)
	}
	c.tokens(r.TokenIDs)
	c.length("loss_mask", len(r.LossMask), n)
	c.mask(r.LossMask, int(r.ContextTokens))
	r.validateOutputs(&c, n)
	c.countOrNull("parsed_calls", r.ParsedCalls)
	c.countOrNull("lag", r.Lag)
	if r.ParsedCalls != nil && *r.ParsedCalls > r.ToolCalls {
		c.fail("parsed_calls", "must be ≤ tool_calls (%d), got %d", r.ToolCalls, *r.ParsedCalls)
	}
	return c.err
}

// validateOutputs checks the nullable per-token columns. Entropies are present only with log-probabilities, and these
// only with the policy version that produced them.
func (r TurnRow) validateOutputs(c *checks, n int) {
	if r.LogProbs == nil {
		if r.Entropies != nil {
			c.fail("entropies", "must be null if logprobs is null")
		}
		return
	}
	c.length("logprobs", len(r.LogProbs), n)
	c.outputs("logprobs", r.LogProbs, -math.MaxFloat32, logProbSlack)
	c.zeroContext("logprobs", r.LogProbs, int(r.ContextTokens))
	c.present("policy_version", r.PolicyVersion)
	if r.Entropies == nil {
		return
	}
	c.length("entropies", len(r.Entropies), n)
	c.outputs("entropies", r.Entropies, -logProbSlack, math.MaxFloat32)
	c.zeroContext("entropies", r.Entropies, int(r.ContextTokens))
}

// Validate implements Row.
func (r ToolCallRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.count("turn", int64(r.Turn))
	c.count("call", int64(r.Call))
	c.line("excluded", r.Excluded)
	if r.Excluded == nil {
		c.present("status", r.Status)
	} else {
		c.empty("status", r.Status, "if there is no verdict")
	}
	return c.err
}

// Validate implements Row.
func (r TransitionRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.count("turn", int64(r.Turn))
	c.finite("reward", r.Reward)
	c.json("admissible", r.Admissible)
	c.line("excluded", r.Excluded)
	switch {
	case r.Excluded != nil:
		c.empty("situation", r.Situation, "where there is no transition")
		c.empty("state", r.State, "where there is no transition")
	case r.Success && !r.Done:
		c.fail("success", "must be false where done is")
	case r.Valid && !r.WellFormed:
		c.fail("valid", "must be false where well_formed is")
	default:
		c.present("situation", r.Situation)
		c.present("state", r.State)
	}
	return c.err
}

// Validate implements Row.
func (r TrajectoryRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.present("problem_id", r.ProblemID)
	c.present("source", r.Source)
	c.count("level", int64(r.Level))
	c.count("turns", int64(r.Turns))
	c.count("tool_calls", int64(r.ToolCalls))
	c.count("tool_errors", int64(r.ToolErrors))
	c.count("answer_tags", int64(r.AnswerTags))
	c.count("tokens", int64(r.Tokens))
	c.count("response_tokens", int64(r.ResponseTokens))
	if r.ToolErrors > r.ToolCalls {
		c.fail("tool_errors", "must be ≤ tool_calls (%d), got %d", r.ToolCalls, r.ToolErrors)
	}
	if r.ResponseTokens > r.Tokens {
		c.fail("response_tokens", "must be ≤ tokens (%d), got %d", r.Tokens, r.ResponseTokens)
	}
	c.line("excluded", r.Excluded)
	ends := []string{"answered", "no_action", "max_turns", "length", "done", "tool_calls"}
	if r.Excluded != nil {
		ends = append(ends, "excluded") // an imported trajectory is complete, whatever broke later
	}
	c.oneOf("finish", r.Finish, ends...)
	if r.SourceReward != nil {
		c.finite("source_reward", *r.SourceReward)
	}
	c.json("messages", r.Messages)
	c.json("item", r.Item)
	for _, f := range []struct {
		name  string
		value *int32
	}{{"begun_calls", r.BegunCalls}, {"parsed_calls", r.ParsedCalls}, {"tool_turns", r.ToolTurns},
		{"malformed_turns", r.MalformedTurns}, {"void_turns", r.VoidTurns}} {
		c.countOrNull(f.name, f.value)
		if (f.value == nil) != (r.BegunCalls == nil) {
			c.fail(f.name, "must be null if and only if begun_calls is null")
		}
	}
	c.countOrNull("open_calls", r.OpenCalls)
	if r.OpenCalls != nil && r.BegunCalls == nil { // rows before minor version 6 have begun_calls alone
		c.fail("open_calls", "must be null where begun_calls is null")
	}
	return c.err
}

// Validate implements Row.
func (r GradingRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.present("answer", r.Answer)
	c.present("gold", r.Gold)
	c.line("excluded", r.Excluded)
	if r.Excluded != nil {
		c.empty("verdict", r.Verdict, "if there is no verdict")
		c.empty("grader", r.Grader, "if there is no verdict")
		return c.err
	}
	c.oneOf("verdict", r.Verdict, GradingEqual, GradingDifferent, GradingUnreadable)
	c.present("grader", r.Grader)
	return c.err
}

// Validate implements Row.
func (r RewardRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.count("level", int64(r.Level))
	c.finite("reward", r.Reward)
	c.finite("outcome", r.Outcome)
	c.count("turns", int64(r.Turns))
	c.count("tool_calls", int64(r.ToolCalls))
	c.count("tool_errors", int64(r.ToolErrors))
	c.count("answer_tags", int64(r.AnswerTags))
	if r.ToolErrors > r.ToolCalls {
		c.fail("tool_errors", "must be ≤ tool_calls (%d), got %d", r.ToolCalls, r.ToolErrors)
	}
	c.finite("error_penalty", r.ErrorPenalty)
	c.finite("format_penalty", r.FormatPenalty)
	c.present("verdict", r.Verdict)
	return c.err
}

// Validate implements Row.
func (r SelectionRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.count("count", int64(r.Count))
	c.nonNegative("weight", r.Weight)
	c.finite("group_mean", r.GroupMean)
	c.nonNegative("group_variance", r.GroupVariance)
	c.finite("value_score", r.ValueScore)
	switch {
	case r.Kept && r.Count == 0:
		c.fail("count", "must be ≥ 1 for a kept trajectory")
	case r.Kept && r.Reason != "":
		c.fail("reason", "must be empty for a kept trajectory, got %q", r.Reason)
	case !r.Kept && r.Count != 0:
		c.fail("count", "must be 0 for a dropped trajectory, got %d", r.Count)
	case !r.Kept && r.Weight != 0:
		c.fail("weight", "must be 0 for a dropped trajectory, got %g", r.Weight)
	case !r.Kept:
		c.present("reason", r.Reason)
	}
	c.line("excluded", r.Excluded)
	if (r.Excluded != nil) != (r.Reason == ReasonExcluded) {
		c.fail("excluded", "must be set if the reason is %q and null otherwise; the reason is %q", ReasonExcluded,
			r.Reason)
	}
	c.line("masked", r.Masked)
	if r.Masked != nil && !r.Kept {
		c.fail("masked", "must be null for a dropped trajectory, got %q", *r.Masked)
	}
	return c.err
}

// Validate implements Row. A list and the digest of the checkpoint that produced it are either both present or both
// absent.
func (r TokenOutputsRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.sameLength([]string{"old_logprobs", "entropies", "reference_logprobs", "values"}, r.OldLogProbs, r.Entropies,
		r.ReferenceLogProbs, r.Values)
	if r.LossMask != nil {
		c.mask(r.LossMask, 0)
		for _, list := range []struct {
			name   string
			values []float32
		}{{"old_logprobs", r.OldLogProbs}, {"entropies", r.Entropies}, {"reference_logprobs", r.ReferenceLogProbs},
			{"values", r.Values}} {
			if list.values != nil {
				c.length(list.name, len(list.values), len(r.LossMask))
				c.zeroOutside(list.name, list.values, r.LossMask)
			}
		}
	}
	c.outputs("old_logprobs", r.OldLogProbs, -math.MaxFloat32, logProbSlack)
	c.outputs("entropies", r.Entropies, -logProbSlack, math.MaxFloat32)
	c.outputs("reference_logprobs", r.ReferenceLogProbs, -math.MaxFloat32, logProbSlack)
	c.outputs("values", r.Values, -math.MaxFloat32, math.MaxFloat32)
	c.behind("policy_version", r.PolicyVersion, r.OldLogProbs != nil || r.Entropies != nil)
	c.behind("reference_version", r.ReferenceVersion, r.ReferenceLogProbs != nil)
	c.behind("critic_version", r.CriticVersion, r.Values != nil)
	return c.err
}

// Validate implements Row.
func (r ReplayRow) Validate() error {
	var c checks
	n := len(r.TokenIDs)
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.collected(r.GroupID, r.Collected)
	c.finite("reward", r.Reward)
	c.finite("advantage", r.Advantage)
	if r.Advantage <= 0 {
		c.fail("advantage", "must be > 0 for a row that was kept, got %g", r.Advantage)
	}
	c.tokens(r.TokenIDs)
	c.length("loss_mask", len(r.LossMask), n)
	c.mask(r.LossMask, 0)
	c.length("old_logprobs", len(r.OldLogProbs), n)
	c.outputs("old_logprobs", r.OldLogProbs, -math.MaxFloat32, logProbSlack)
	c.countOrNull("turn", r.Turn)
	return c.err
}

// Validate implements Row.
func (r BaselineRow) Validate() error {
	var c checks
	c.group(r.GroupID)
	c.collected(r.GroupID, r.Collected)
	c.finite("mean", r.Mean)
	return c.err
}

// Validate implements Row.
func (r UpdateRow) Validate() error {
	var c checks
	c.count("optimizer_step", r.OptimizerStep)
	c.count("minibatch", int64(r.Minibatch))
	c.count("rows", int64(r.Rows))
	c.count("tokens", r.Tokens)
	c.finite("loss", r.Loss)
	c.finite("kl", r.KL)
	c.nonNegative("clip_fraction", r.ClipFraction)
	c.nonNegativeOrNull("clip_fraction_positive", r.ClipFractionPositive)
	c.nonNegativeOrNull("clip_fraction_negative", r.ClipFractionNegative)
	if r.ReferenceKL != nil {
		c.finite("reference_kl", *r.ReferenceKL)
	}
	c.nonNegativeOrNull("value_loss", r.ValueLoss)
	c.nonNegativeOrNull("value_grad_norm", r.ValueGradNorm)
	if r.ExplainedVariance != nil {
		c.finite("explained_variance", *r.ExplainedVariance)
	}
	c.shareOrNull("value_clip_fraction", r.ValueClipFraction)
	c.finiteOrNull("value_mean", r.ValueMean)
	c.finiteOrNull("return_mean", r.ReturnMean)
	c.finiteOrNull("advantage_mean", r.AdvantageMean)
	c.nonNegativeOrNull("advantage_std", r.AdvantageStd)
	c.finiteOrNull("advantage_min", r.AdvantageMin)
	c.finiteOrNull("advantage_max", r.AdvantageMax)
	c.shareOrNull("advantage_zero", r.AdvantageZero)
	c.shareOrNull("advantage_positive", r.AdvantagePositive)
	c.shareOrNull("below_positive", r.BelowPositive)
	c.shareOrNull("above_negative", r.AboveNegative)
	c.shareOrNull("dual_clip_fraction", r.DualClipFraction)
	c.finiteOrNull("entropy", r.Entropy)
	c.nonNegative("ratio_max", r.RatioMax)
	c.nonNegativeOrNull("ratio_min", r.RatioMin)
	c.nonNegativeOrNull("grad_norm", r.GradNorm)
	c.nonNegative("lr", r.LR)
	c.present("policy_before", r.PolicyBefore)
	if r.Source != nil {
		c.oneOf("source", *r.Source, SourcePolicy, SourceReplay)
	}
	c.countOrNull("epoch", r.Epoch)
	for i, n := range r.BatchRows {
		if n < 0 {
			c.fail("batch_rows", "entry %d: must be ≥ 0, got %d", i, n)
			break
		}
	}
	return c.err
}

// Validate implements Row.
func (r EvaluationRow) Validate() error {
	var c checks
	c.oneOf("tag", r.Tag, "initial", "warm_start", "step", "final")
	c.present("problem_id", r.ProblemID)
	c.count("level", int64(r.Level))
	c.count("sample", int64(r.Sample))
	c.count("tool_calls", int64(r.ToolCalls))
	c.count("tool_errors", int64(r.ToolErrors))
	c.count("turns", int64(r.Turns))
	c.count("tokens", int64(r.Tokens))
	if r.ToolErrors > r.ToolCalls {
		c.fail("tool_errors", "must be ≤ tool_calls (%d), got %d", r.ToolCalls, r.ToolErrors)
	}
	if r.TrajectoryID != nil && !trajectoryForm.MatchString(*r.TrajectoryID) {
		c.fail("trajectory_id", "want step/group/sample as 00000/0000/000, got %q", *r.TrajectoryID)
	}
	c.countOrNull("response_tokens", r.ResponseTokens)
	if r.ResponseTokens != nil && *r.ResponseTokens > r.Tokens {
		c.fail("response_tokens", "must be ≤ tokens (%d), got %d", r.Tokens, *r.ResponseTokens)
	}
	c.shareOrNull("score", r.Score)
	c.shareOrNull("f1", r.F1)
	return c.err
}

// Validate implements Row.
func (r EvaluationDebateRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.outputs("logprobs", r.LogProbs, -math.MaxFloat32, logProbSlack)
	for _, n := range []struct {
		name  string
		value int32
	}{{"sample", r.Sample}, {"turn", r.Turn}, {"round", r.Round}, {"agent", r.Agent}} {
		c.count(n.name, int64(n.value))
	}
	if r.Abstained && r.Candidate != "" {
		c.fail("candidate", "must be empty where the agent abstained, got %q", r.Candidate)
	}
	if r.Drawn && !r.Chosen {
		c.fail("drawn", "must be false where chosen is false")
	}
	c.countOrNull("context_tokens", r.ContextTokens)
	if r.ContextTokens != nil && int(*r.ContextTokens)+len(r.LogProbs) != len(r.TokenIDs) {
		c.fail("logprobs", "must have an entry for each of %d tokens that were written, got %d",
			len(r.TokenIDs)-int(*r.ContextTokens), len(r.LogProbs))
	}
	return c.err
}

// Validate implements Row. Shard, turn and call are −1 where they do not apply.
func (r TimingRow) Validate() error {
	var c checks
	c.present("stage", r.Stage)
	c.oneOf("kind", r.Kind, "activity", "tool_call")
	switch shared := r.Shared != nil && *r.Shared; {
	case shared && r.EndMicros != nil:
		c.fail("end_micros", "must be null where shared is true, got %d", *r.EndMicros)
	case r.EndMicros == nil && r.Kind != "tool_call":
		c.fail("end_micros", "must not be null for an activity")
	case r.EndMicros != nil && *r.EndMicros < r.StartMicros:
		c.fail("end_micros", "must be ≥ start_micros (%d), got %d", r.StartMicros, *r.EndMicros)
	}
	c.nonNegative("queue_seconds", r.QueueSeconds)
	c.nonNegative("cpu_seconds", r.CPUSeconds)
	c.count("attempt", int64(r.Attempt))
	c.count("rows", r.Rows)
	c.count("tokens", r.Tokens)
	if r.DevicePeakBytes != nil {
		c.count("device_peak_bytes", *r.DevicePeakBytes)
	}
	c.nonNegativeOrNull("device_utilisation", r.DeviceUtilisation)
	c.nonNegativeOrNull("mfu", r.MFU)
	c.nonNegativeOrNull("train_tokens_per_s", r.TrainTokensPerS)
	return c.err
}

// Validate checks the row's own invariants; the error starts with the field at fault.
func (r BatchRow) Validate() error {
	var c checks
	n := len(r.TokenIDs)
	c.trajectory(r.GroupID, r.TrajectoryID)
	if r.Count < 1 {
		c.fail("count", "must be ≥ 1, got %d", r.Count)
	}
	c.nonNegative("weight", r.Weight)
	c.tokens(r.TokenIDs)
	c.length("loss_mask", len(r.LossMask), n)
	c.mask(r.LossMask, 0)
	if r.OldLogProbs != nil {
		c.length("old_logprobs", len(r.OldLogProbs), n)
		c.outputs("old_logprobs", r.OldLogProbs, -math.MaxFloat32, logProbSlack)
	}
	for _, more := range []struct {
		name   string
		values []float32
	}{{"rollout_logprobs", r.RolloutLogProbs}, {"reference_logprobs", r.ReferenceLogProbs}} {
		if more.values != nil {
			c.length(more.name, len(more.values), n)
			c.outputs(more.name, more.values, -math.MaxFloat32, logProbSlack)
		}
	}
	c.countOrNull("turn", r.Turn)
	for _, more := range []struct {
		name   string
		values []float32
	}{{"values", r.Values}, {"returns", r.Returns}} {
		if (more.values == nil) != (r.Returns == nil) {
			c.fail(more.name, "must be null if and only if returns is null")
		}
		if more.values != nil {
			c.length(more.name, len(more.values), n)
			c.outputs(more.name, more.values, -math.MaxFloat32, math.MaxFloat32)
		}
	}
	c.length("advantages", len(r.Advantages), n)
	c.outputs("advantages", r.Advantages, -math.MaxFloat32, math.MaxFloat32)
	c.zeroOutside("advantages", r.Advantages, r.LossMask)
	return c.err
}
