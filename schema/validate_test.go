package schema

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var nan32, inf = float32(math.NaN()), math.Inf(1)

// refuses changes one field of a valid second row and wants Encode to name row and field.
func refuses[R Row](t *testing.T, rows []R, name, text string, change func(*R)) {
	t.Helper()
	t.Run(string(TableOf[R]())+" "+name, func(t *testing.T) {
		require.NoError(t, Audit(rows))
		changed := append([]R{}, rows...)
		change(&changed[1])
		_, err := Encode(changed)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "table "+string(TableOf[R]())+" row 1 (")
	})
}

func turnPair() []TurnRow {
	row := TurnRow{GroupID: "00003/0001", TrajectoryID: "00003/0001/002", ContextTokens: 1, TokenIDs: []int32{5, 6, 7},
		LossMask: []int32{0, 1, 1},
		LogProbs: []float32{0, -0.5, 0}, Entropies: []float32{0, 0.5, 0}, Finish: "stop", PolicyVersion: "v"}
	next := row
	next.Turn = 1
	return []TurnRow{row, next}
}

func TestTurnsAreValidated(t *testing.T) {
	rows := turnPair()
	for _, c := range []struct {
		name, text string
		change     func(*TurnRow)
	}{
		{"group", `group_id: want step/group as 00000/0000, got "3/1"`, func(r *TurnRow) { r.GroupID = "3/1" }},
		{"trajectory", "trajectory_id: want step/group/sample", func(r *TurnRow) { r.TrajectoryID = "00003/0001/2" }},
		{"trajectory of another group", "trajectory_id: 00003/0002/002 does not belong to group 00003/0001",
			func(r *TurnRow) { r.TrajectoryID = "00003/0002/002" }},
		{"turn", "turn: must be ≥ 0, got -1", func(r *TurnRow) { r.Turn = -1 }},
		{"finish", `finish: must be one of ["stop" "length"], got ""`, func(r *TurnRow) { r.Finish = "" }},
		{"calls", "tool_calls: must be ≥ 0", func(r *TurnRow) { r.ToolCalls = -1 }},
		{"context", "context_tokens: must lie between 0 and the 3 tokens", func(r *TurnRow) { r.ContextTokens = 4 }},
		{"token", "token_ids: entry 2: must be ≥ 0, got -1", func(r *TurnRow) { r.TokenIDs = []int32{1, 2, -1} }},
		{"mask length", "loss_mask: has 2 entries, but token_ids has 3",
			func(r *TurnRow) { r.LossMask = []int32{0, 1} }},
		{"mask value", "loss_mask: entry 1: must be 0 or 1, got 2", func(r *TurnRow) { r.LossMask = []int32{0, 2, 1} }},
		{"mask on context", "loss_mask: entry 0: is 1 on a token of the context",
			func(r *TurnRow) { r.LossMask = []int32{1, 1, 1} }},
		{"logprobs length", "logprobs: has 4 entries", func(r *TurnRow) { r.LogProbs = make([]float32, 4) }},
		{"logprobs NaN", "logprobs: entry 1: must be finite, got NaN",
			func(r *TurnRow) { r.LogProbs = []float32{0, nan32, 0} }},
		{"logprobs infinite", "logprobs: entry 1: must be finite, got -Inf",
			func(r *TurnRow) { r.LogProbs = []float32{0, float32(-inf), 0} }},
		{"logprobs positive", "logprobs: entry 1: must lie in",
			func(r *TurnRow) { r.LogProbs = []float32{0, 2e-4, 0} }},
		{"logprobs on context", "logprobs: entry 0: must be 0 on a token of the context",
			func(r *TurnRow) { r.LogProbs = []float32{-1, 0, 0} }},
		{"entropies empty", "entropies: has 0 entries", func(r *TurnRow) { r.Entropies = []float32{} }},
		{"entropies without logprobs", "entropies: must be null if logprobs is null",
			func(r *TurnRow) { r.LogProbs = nil }},
		{"entropies negative", "entropies: entry 1: must lie in",
			func(r *TurnRow) { r.Entropies = []float32{0, -1, 0} }},
		{"version", "policy_version: must not be empty", func(r *TurnRow) { r.PolicyVersion = "" }},
		{"repeated", "repeats 00003/0001 00003/0001/002 0", func(r *TurnRow) { r.Turn = 0 }},
	} {
		if c.name == "repeated" {
			changed := turnPair()
			c.change(&changed[1])
			_, err := Encode(changed)
			require.ErrorContains(t, err, "table turns row 1: "+c.text)
			continue
		}
		refuses(t, rows, c.name, c.text, c.change)
	}
	rows[1].LogProbs = []float32{0, 9e-5, -3}
	require.NoError(t, Audit(rows), "rounding of a log-softmax is allowed for")
	rows[1].Entropies = nil
	require.NoError(t, Audit(rows), "not every sampler gives entropies")
	rows[0], rows[1] = rows[1], rows[0]
	_, err := Encode(rows)
	require.ErrorContains(t, err, "table turns row 1: is out of order")
	Sort(rows)
	require.NoError(t, Audit(rows))
}

func TestOtherRowsAreValidated(t *testing.T) {
	both := func(c tableCase) any { return c.rows(1, 2) }
	prompts, calls := both(parquetCase(promptRows)).([]PromptRow), both(parquetCase(toolCallRows)).([]ToolCallRow)
	trajectories, rewards := both(parquetCase(trajectoryRows)).([]TrajectoryRow),
		both(parquetCase(rewardRows)).([]RewardRow)
	updates, evaluations := both(parquetCase(updateRows)).([]UpdateRow),
		both(parquetCase(evaluationRows)).([]EvaluationRow)
	timings := both(parquetCase(timingRows)).([]TimingRow)
	selection := []SelectionRow{
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/000", Kept: true, Count: 1, Weight: 1},
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/001", Kept: true, Count: 2, Weight: 0.5},
	}
	tasks := both(parquetCase(taskRows)).([]TaskRow)
	refuses(t, tasks, "reason", "reason: must not be empty", func(r *TaskRow) { r.Kept, r.Reason = false, "" })
	refuses(t, tasks, "correct", "correct: must be ≤ samples (8), got 9", func(r *TaskRow) {
		r.Samples, r.Correct = new(int32(8)), new(int32(9))
	})
	refuses(t, tasks, "samples", "correct: must be null exactly if", func(r *TaskRow) {
		r.Samples, r.Correct = nil, new(int32(1))
	})
	refuses(t, prompts, "problem", "problem_id: must not be empty", func(r *PromptRow) { r.ProblemID = "" })
	refuses(t, prompts, "level", "level: must be ≥ 0", func(r *PromptRow) { r.Level = -1 })
	refuses(t, calls, "status", "status: must not be empty", func(r *ToolCallRow) { r.Status = "" })
	refuses(t, calls, "call", "call: must be ≥ 0", func(r *ToolCallRow) { r.Call = -1 })
	steps := both(parquetCase(transitionRows)).([]TransitionRow)
	refuses(t, steps, "paid", "reward: must be finite", func(r *TransitionRow) { r.Reward = math.NaN() })
	refuses(t, steps, "success", "success: must be false where done is",
		func(r *TransitionRow) { r.Success, r.Done = true, false })
	refuses(t, steps, "valid", "valid: must be false where well_formed is",
		func(r *TransitionRow) { r.Success, r.Valid, r.WellFormed = false, true, false })
	refuses(t, steps, "state", "state: must not be empty",
		func(r *TransitionRow) { r.Success, r.Valid, r.State = false, false, "" })
	refuses(t, steps, "admissible", "admissible: must be JSON", func(r *TransitionRow) { r.Admissible = new("[up") })
	refuses(t, steps, "excluded", "state: must be empty where there is no transition",
		func(r *TransitionRow) { r.Situation, r.Excluded = "", &why })
	refuses(t, trajectories, "errors", "tool_errors: must be ≤ tool_calls",
		func(r *TrajectoryRow) { r.ToolErrors = r.ToolCalls + 1 })
	refuses(t, trajectories, "responses", "response_tokens: must be ≤ tokens",
		func(r *TrajectoryRow) { r.ResponseTokens = r.Tokens + 1 })
	refuses(t, trajectories, "finish", "finish: must be one of", func(r *TrajectoryRow) { r.Finish = "stop" })
	refuses(t, trajectories, "source's reward", "source_reward: must be finite",
		func(r *TrajectoryRow) { r.SourceReward = new(math.Inf(1)) })
	refuses(t, trajectories, "messages", "messages: must be JSON in UTF-8",
		func(r *TrajectoryRow) { r.Messages = new("[") })
	refuses(t, trajectories, "item", "item: must be JSON in UTF-8", func(r *TrajectoryRow) { r.Item = new("\"\xff\"") })
	refuses(t, trajectories, "source", "source: must not be empty", func(r *TrajectoryRow) { r.Source = "" })
	refuses(t, rewards, "reward", "reward: must be finite, got +Inf", func(r *RewardRow) { r.Reward = inf })
	refuses(t, rewards, "penalty", "format_penalty: must be finite, got NaN",
		func(r *RewardRow) { r.FormatPenalty = math.NaN() })
	refuses(t, rewards, "verdict", "verdict: must not be empty", func(r *RewardRow) { r.Verdict = "" })
	refuses(t, selection, "kept without count", "count: must be ≥ 1 for a kept", func(r *SelectionRow) { r.Count = 0 })
	refuses(t, selection, "kept with reason", "reason: must be empty for a kept",
		func(r *SelectionRow) { r.Reason = "x" })
	refuses(t, selection, "dropped with count", "count: must be 0 for a dropped",
		func(r *SelectionRow) { r.Kept = false })
	refuses(t, selection, "dropped with weight", "weight: must be 0 for a dropped",
		func(r *SelectionRow) { r.Kept, r.Count = false, 0 })
	refuses(t, selection, "dropped without reason", "reason: must not be empty",
		func(r *SelectionRow) { r.Kept, r.Count, r.Weight = false, 0, 0 })
	refuses(t, selection, "variance", "group_variance: must be ≥ 0", func(r *SelectionRow) { r.GroupVariance = -1 })
	empty, lines, latin := "", "two\nlines", "caf\xe9"
	gone := func(r *SelectionRow) {
		r.Kept, r.Count, r.Weight, r.Reason, r.Excluded = false, 0, 0, ReasonExcluded, &why
	}
	refuses(t, selection, "excluded without why", "excluded: must be set if the reason is",
		func(r *SelectionRow) { gone(r); r.Excluded = nil })
	refuses(t, selection, "excluded for another reason", "excluded: must be set if the reason is",
		func(r *SelectionRow) { gone(r); r.Reason = "zero_variance" })
	refuses(t, selection, "why is empty", "excluded: must be null or one line",
		func(r *SelectionRow) { gone(r); r.Excluded = &empty })
	refuses(t, selection, "why has lines", "excluded: must be null or one line",
		func(r *SelectionRow) { gone(r); r.Excluded = &lines })
	refuses(t, selection, "why is no text", "excluded: must be null or one line",
		func(r *SelectionRow) { gone(r); r.Excluded = &latin })
	refuses(t, calls, "excluded with a status", "status: must be empty if there is no verdict",
		func(r *ToolCallRow) { r.Excluded = &why })
	refuses(t, trajectories, "excluded without why", "finish: must be one of",
		func(r *TrajectoryRow) { r.Finish = "excluded" })
	refuses(t, turnPair(), "excluded with a finish", "finish: must be empty if no response",
		func(r *TurnRow) { r.Excluded = &why })
	refuses(t, turnPair(), "excluded with a response", "context_tokens: must be all 3 tokens",
		func(r *TurnRow) { r.Excluded, r.Finish = &why, "" })
	gradings := []GradingRow{
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/001", Answer: "x+1", Gold: "1+x", Excluded: &why},
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/002", Answer: "x+1", Gold: "1+x", Verdict: GradingEqual,
			Grader: "sympy 1.14.0"},
	}
	refuses(t, gradings, "no verdict", "verdict: must be one of", func(r *GradingRow) { r.Verdict = "" })
	refuses(t, gradings, "no grader", "grader: must not be empty", func(r *GradingRow) { r.Grader = "" })
	refuses(t, gradings, "no answer", "answer: must not be empty", func(r *GradingRow) { r.Answer = "" })
	refuses(t, gradings, "excluded with a verdict", "verdict: must be empty if there is no verdict",
		func(r *GradingRow) { r.Excluded = &why })
	called := []FunctionScoreRow{
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/001", Function: "a:b", Excluded: &why},
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/002", Function: "a:b", Score: new(0.5), Success: new(true)},
	}
	refuses(t, called, "no function", "function: must not be empty", func(r *FunctionScoreRow) { r.Function = "" })
	refuses(t, called, "neither score nor reason", "score: must not be null",
		func(r *FunctionScoreRow) { r.Score, r.Excluded = nil, nil })
	refuses(t, called, "excluded with a score", "score: must be null",
		func(r *FunctionScoreRow) { r.Score, r.Excluded = new(1.0), &why })
	refuses(t, called, "NaN", "score: must be finite",
		func(r *FunctionScoreRow) { r.Score, r.Excluded = new(math.NaN()), nil })
	sampled := []BehaviourRow{
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/001", LogProbs: []float32{0, -1}, PolicyVersion: Digest(nil)},
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/002", LogProbs: []float32{0, -1}, PolicyVersion: Digest(nil)},
	}
	refuses(t, sampled, "no version", "policy_version: must not be empty",
		func(r *BehaviourRow) { r.PolicyVersion = "" })
	refuses(t, sampled, "positive", "logprobs", func(r *BehaviourRow) { r.LogProbs[1] = 1 })
	judged := []JudgementRow{
		{
			GroupID:      "00003/0001",
			TrajectoryID: "00003/0001/001",
			Criterion:    "matching",
			Answer:       "x",
			PromptDigest: Digest(nil),
			Model:        "m",
			Attempts:     5,
			Reply:        "sorry",
			Excluded:     &why,
		},
		{
			GroupID:      "00003/0001",
			TrajectoryID: "00003/0001/002",
			Criterion:    "matching",
			Answer:       "x",
			PromptDigest: Digest(nil),
			Model:        "m",
			Attempts:     1,
			Reply:        "Match",
			Verdict:      JudgementMatch,
		},
	}
	refuses(t, judged, "no verdict", "verdict: must be one of", func(r *JudgementRow) { r.Verdict = "" })
	refuses(t, judged, "no such criterion", "criterion: must be one of", func(r *JudgementRow) { r.Criterion = "nice" })
	refuses(t, judged, "no digest", "prompt_digest", func(r *JudgementRow) { r.PromptDigest = "x" })
	refuses(t, judged, "no model", "model: must not be empty", func(r *JudgementRow) { r.Model = "" })
	refuses(t, judged, "another reply", "reply: must hold the verdict", func(r *JudgementRow) { r.Reply = "north" })
	refuses(t, judged, "excluded with a verdict", "verdict: must be empty if there is no verdict",
		func(r *JudgementRow) { r.Excluded = &why })
	digest := Digest(nil)
	outputs := []TokenOutputsRow{
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/001"},
		{GroupID: "00003/0001", TrajectoryID: "00003/0001/002", OldLogProbs: []float32{0, -1}, PolicyVersion: digest},
	}
	refuses(t, outputs, "old log-probability", "old_logprobs: entry 1: must lie in",
		func(r *TokenOutputsRow) { r.OldLogProbs = []float32{0, 1} })
	refuses(t, outputs, "nothing behind", "policy_version: want the digest",
		func(r *TokenOutputsRow) { r.PolicyVersion = "" })
	refuses(t, outputs, "behind nothing", "reference_version: must be empty",
		func(r *TokenOutputsRow) { r.ReferenceVersion = digest })
	refuses(t, outputs, "no critic", "critic_version: want the digest",
		func(r *TokenOutputsRow) { r.Values = []float32{0, 3} })
	refuses(t, outputs, "ragged", "entropies: has 1 entries, but old_logprobs has 2",
		func(r *TokenOutputsRow) { r.Entropies = []float32{0} })
	refuses(t, updates, "reference", "reference_kl: must be finite",
		func(r *UpdateRow) { r.ReferenceKL = new(math.Inf(1)) })
	refuses(t, updates, "loss", "loss: must be finite", func(r *UpdateRow) { r.Loss = math.NaN() })
	refuses(t, updates, "clipping", "clip_fraction_negative: must be ≥ 0",
		func(r *UpdateRow) { r.ClipFractionNegative = new(-0.5) })
	refuses(t, updates, "policy", "policy_before: must not be empty", func(r *UpdateRow) { r.PolicyBefore = "" })
	refuses(t, evaluations, "tag", "tag: must be one of", func(r *EvaluationRow) { r.Tag = "middle" })
	refuses(t, evaluations, "score", "score: must", func(r *EvaluationRow) { r.Score = new(1.5) })
	refuses(t, evaluations, "f1", "f1: must", func(r *EvaluationRow) { r.F1 = new(math.NaN()) })
	debate := EvaluationDebateRow{GroupID: "00003/0000", TrajectoryID: "00003/0000/001", Candidate: "4",
		ContextTokens: new(int32(2)), TokenIDs: []int32{1, 2, 3}, LogProbs: []float32{-1}, Chosen: true, Drawn: true}
	other := debate
	other.Agent = 1
	debates := []EvaluationDebateRow{debate, other}
	refuses(t, debates, "candidate", "candidate: must be empty where the agent abstained",
		func(r *EvaluationDebateRow) { r.Abstained = true })
	refuses(t, debates, "drawn", "drawn: must be false", func(r *EvaluationDebateRow) { r.Chosen = false })
	refuses(t, debates, "logprobs", "logprobs: must have an entry for each of 2 tokens",
		func(r *EvaluationDebateRow) { r.ContextTokens = new(int32(1)) })
	refuses(t, debates, "trajectory", "does not belong to group",
		func(r *EvaluationDebateRow) { r.TrajectoryID = "00003/0001/001" })
	refuses(t, debates, "round", "round: must be ≥ 0", func(r *EvaluationDebateRow) { r.Round = -1 })
	refuses(t, evaluations, "tokens", "tokens: must be ≥ 0", func(r *EvaluationRow) { r.Tokens = -1 })
	refuses(t, timings, "end", "end_micros: must be ≥ start_micros",
		func(r *TimingRow) { r.EndMicros = new(r.StartMicros - 1) })
	refuses(t, timings, "no end", "end_micros: must not be null for an activity",
		func(r *TimingRow) { r.EndMicros = nil })
	refuses(t, timings, "shared", "end_micros: must be null where shared is true",
		func(r *TimingRow) { r.Shared = new(true) })
	refuses(t, updates, "membership", "batch_rows: entry 1: must be ≥ 0",
		func(r *UpdateRow) { r.BatchRows = []int32{0, -1} })
	refuses(t, updates, "epoch", "epoch: must be ≥ 0", func(r *UpdateRow) { r.Epoch = new(int32(-1)) })
	refuses(t, evaluations, "episode", "trajectory_id: want step/group/sample",
		func(r *EvaluationRow) { r.TrajectoryID = new("1/2/3") })
	refuses(t, evaluations, "written", "response_tokens: must be ≤ tokens",
		func(r *EvaluationRow) { r.ResponseTokens = new(r.Tokens + 1) })
	refuses(t, timings, "kind", "kind: must be one of", func(r *TimingRow) { r.Kind = "stage" })
}

func TestBatchIsValidated(t *testing.T) {
	valid := func() []BatchRow {
		row := BatchRow{GroupID: "00003/0001", TrajectoryID: "00003/0001/002", Count: 1, Weight: 1,
			TokenIDs: []int32{5, 6}, LossMask: []int32{0, 1},
			OldLogProbs: []float32{0, -1}, Advantages: []float32{0, 2}}
		return []BatchRow{row}
	}
	_, err := EncodeBatch(valid())
	require.NoError(t, err)
	for _, c := range []struct {
		text   string
		change func(*BatchRow)
	}{
		{"count: must be ≥ 1", func(r *BatchRow) { r.Count = 0 }},
		{"weight: must be finite", func(r *BatchRow) { r.Weight = math.NaN() }},
		{"loss_mask: has 1 entries", func(r *BatchRow) { r.LossMask = r.LossMask[:1] }},
		{"old_logprobs: has 1 entries", func(r *BatchRow) { r.OldLogProbs = r.OldLogProbs[:1] }},
		{"rollout_logprobs: has 1 entries", func(r *BatchRow) { r.RolloutLogProbs = r.OldLogProbs[:1] }},
		{"reference_logprobs: entry 1: must lie in", func(r *BatchRow) { r.ReferenceLogProbs = []float32{0, 1} }},
		{"advantages: has 0 entries", func(r *BatchRow) { r.Advantages = nil }},
		{"advantages: entry 1: must be finite", func(r *BatchRow) { r.Advantages = []float32{0, nan32} }},
		{"advantages: entry 0: must be 0 where the loss mask is 0",
			func(r *BatchRow) { r.Advantages = []float32{1, 1} }},
	} {
		rows := valid()
		c.change(&rows[0])
		_, err := EncodeBatch(rows)
		require.ErrorContains(t, err, "table batch row 0 (00003/0001 00003/0001/002 0): "+c.text)
	}
	rows := append(valid(), valid()...)
	_, err = EncodeBatch(rows)
	require.ErrorContains(t, err, "row 1: repeats")
}
