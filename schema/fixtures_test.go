package schema

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// The fixtures: valid rows drawn from a seed, in canonical order, with every kind of value: nulls,
// empty lists, empty and non-ASCII text, the extremes of numbers.

var (
	texts = []string{"", "7", "12 + 30 = ?", "naïve ∑ 漢字 🙂",
		"line\nline\ttab \"quoted\" <answer>\\boxed{42}</answer>", "\x00 is a byte too"}
	statuses = []string{"ok", "runtime_error", "timeout_cpu", "decode_error"}
)

func pick[T any](r *rand.Rand, xs []T) T { return xs[r.IntN(len(xs))] }

func digestFor(r *rand.Rand) string { return Digest([]byte{byte(r.IntN(3))}) }

// ids returns the n-th trajectory's ids, four samples a group.
func ids(n int) (group, trajectory string) { return GroupID(3, n/4), TrajectoryID(3, n/4, n%4) }

func tokens(r *rand.Rand, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = r.Int32N(400)
	}
	return out
}

func promptRows(r *rand.Rand, n int) []PromptRow {
	rows := make([]PromptRow, n)
	for i := range rows {
		rows[i] = PromptRow{GroupID: GroupID(3, i), ProblemID: Digest(fmt.Append(nil, i)), Level: r.Int32N(5),
			Problem: pick(r, texts),
			Answer:  pick(r, texts), Expression: pick(r, texts), TokenIDs: tokens(r, r.IntN(20))}
	}
	return rows
}

func turnRows(r *rand.Rand, n int) []TurnRow {
	rows := make([]TurnRow, n)
	for i := range rows {
		group, trajectory := ids(i / 3)
		count := r.IntN(30)
		context := r.IntN(count + 1)
		row := TurnRow{GroupID: group, TrajectoryID: trajectory, Turn: int32(i % 3), ContextTokens: int32(context),
			TokenIDs: tokens(r, count), LossMask: make([]int32, count), Observation: pick(r, texts),
			Response: pick(r, texts),
			Finish:   pick(r, []string{"stop", "length"}), ToolCalls: r.Int32N(3), Answered: r.IntN(2) == 0,
			AnchorHash: digestFor(r)}
		for j := context; j < count; j++ {
			row.LossMask[j] = r.Int32N(2)
		}
		if r.IntN(3) > 0 {
			row.PolicyVersion = digestFor(r)
			row.LogProbs, row.Entropies = make([]float32, count), make([]float32, count)
			for j := context; j < count; j++ {
				row.LogProbs[j], row.Entropies[j] = -float32(r.ExpFloat64()), float32(r.ExpFloat64())
			}
		}
		if i%2 == 0 {
			row.ParsedCalls, row.Wrapped = new(r.Int32N(row.ToolCalls+1)), new(r.IntN(2) == 0)
		}
		if i%7 == 6 { // the engine broke: a context alone
			row.TokenIDs, row.LossMask = row.TokenIDs[:context], row.LossMask[:context]
			row.Finish, row.Excluded = "", &why
			if row.LogProbs != nil {
				row.LogProbs, row.Entropies = row.LogProbs[:context], row.Entropies[:context]
			}
		}
		rows[i] = row
	}
	return rows
}

// why is the reason of every exclusion.
var why = "engine: panicked: index out of range [漢]"

func toolCallRows(r *rand.Rand, n int) []ToolCallRow {
	rows := make([]ToolCallRow, n)
	for i := range rows {
		group, trajectory := ids(i / 4)
		rows[i] = ToolCallRow{GroupID: group, TrajectoryID: trajectory, Turn: int32(i / 2 % 2), Call: int32(i % 2),
			Name:      pick(r, texts),
			Arguments: pick(r, texts), Code: pick(r, texts), Stdin: pick(r, texts), Status: pick(r, statuses),
			ExitCode: r.Int32N(3) - 1,
			Stdout:   pick(r, texts), Stderr: pick(r, texts), Value: pick(r, texts), Response: pick(r, texts)}
		if i%7 == 6 {
			rows[i].Status, rows[i].Excluded = "", &why
		}
	}
	return rows
}

func transitionRows(r *rand.Rand, n int) []TransitionRow {
	rows := make([]TransitionRow, n)
	for i := range rows {
		group, trajectory := ids(i / 3)
		formed, done := r.IntN(4) > 0, i%3 == 2
		rows[i] = TransitionRow{GroupID: group, TrajectoryID: trajectory, Turn: int32(i % 3), SeenHash: digestFor(r),
			Situation: digestFor(r),
			Action:    pick(r, texts), WellFormed: formed, Valid: formed && r.IntN(2) == 0, Reward: r.NormFloat64(),
			Done: done, Success: done && r.IntN(2) == 0,
			State: "{}", Observation: pick(r, texts)}
		if !done {
			rows[i].Admissible = new(`["up","down"]`)
		}
		if i%7 == 6 {
			rows[i] = TransitionRow{GroupID: group, TrajectoryID: trajectory, Turn: int32(i % 3),
				Action: pick(r, texts), WellFormed: formed, Excluded: &why}
		}
	}
	return rows
}

func trajectoryRows(r *rand.Rand, n int) []TrajectoryRow {
	rows := make([]TrajectoryRow, n)
	yes, no := true, false
	for i := range rows {
		group, trajectory := ids(i)
		calls, all := r.Int32N(4), r.Int32N(200)
		rows[i] = TrajectoryRow{GroupID: group, TrajectoryID: trajectory, ProblemID: digestFor(r), Level: r.Int32N(5),
			Source: "rollout",
			Turns:  1 + r.Int32N(3), ToolCalls: calls, ToolErrors: r.Int32N(calls + 1), AnswerTags: r.Int32N(3),
			Tokens:         all,
			ResponseTokens: r.Int32N(all + 1),
			Finish:         pick(r, []string{"answered", "no_action", "max_turns", "length"}),
			FinalAnswer:    pick(r, texts), HasAnswer: r.IntN(2) == 0, Gold: pick(r, texts),
			PolicyVersion: digestFor(r), Text: pick(r, texts), Reference: pick(r, []*bool{nil, &yes, &no})}
		if r.IntN(2) == 0 {
			reward, list, item := r.NormFloat64(), `[{"role": "user", "content": "∑ \u0000"}]`, `{}`
			rows[i].SourceReward, rows[i].Messages, rows[i].Item = &reward, &list, &item
		} else {
			for _, f := range []**int32{&rows[i].BegunCalls, &rows[i].ParsedCalls, &rows[i].ToolTurns,
				&rows[i].MalformedTurns, &rows[i].VoidTurns, &rows[i].OpenCalls} {
				*f = new(r.Int32N(4))
			}
		}
		if i%7 == 6 {
			rows[i].Finish, rows[i].Excluded = "excluded", &why
		}
	}
	return rows
}

func rewardRows(r *rand.Rand, n int) []RewardRow {
	rows := make([]RewardRow, n)
	yes, no := true, false
	for i := range rows {
		group, trajectory := ids(i)
		rows[i] = RewardRow{GroupID: group, TrajectoryID: trajectory, Level: r.Int32N(5), Reward: r.NormFloat64(),
			Outcome: float64(r.IntN(2)),
			Success: r.IntN(2) == 0, Turns: r.Int32N(4), ToolCalls: 3, ToolErrors: r.Int32N(4), AnswerTags: r.Int32N(3),
			ErrorPenalty: r.Float64(), FormatPenalty: r.Float64(),
			Verdict:   pick(r, []string{"exact", "wrong", "no_answer"}),
			Reference: pick(r, []*bool{nil, &yes, &no})}
	}
	return rows
}

func selectionRows(r *rand.Rand, n int) []SelectionRow {
	rows := make([]SelectionRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		row := SelectionRow{GroupID: group, TrajectoryID: trajectory, GroupMean: r.NormFloat64(),
			GroupVariance: r.Float64(), ValueScore: r.NormFloat64()}
		if row.Kept = r.IntN(2) == 0; row.Kept {
			row.Count, row.Weight = 1+r.Int32N(3), r.Float64()
			row.Masked = pick(r, []*string{nil, nil, new("overlong")})
		} else {
			row.Reason = pick(r, []string{"zero_variance", "roc_not_drawn", ReasonExcluded})
		}
		if row.Reason == ReasonExcluded {
			row.Excluded = &why
		}
		rows[i] = row
	}
	return rows
}

func gradingRows(r *rand.Rand, n int) []GradingRow {
	why := "grading: timeout_cpu"
	rows := make([]GradingRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		row := GradingRow{GroupID: group, TrajectoryID: trajectory, Answer: fmt.Sprintf("x+%d", r.IntN(9)), Gold: "1+x"}
		if row.Verdict = pick(r, []string{"", GradingEqual, GradingDifferent, GradingUnreadable}); row.Verdict == "" {
			row.Excluded = &why
		} else {
			row.Grader = "sympy 1.14.0"
		}
		rows[i] = row
	}
	return rows
}

func judgementRows(r *rand.Rand, n int) []JudgementRow {
	why := "judge: the model's server is failing: it answers 500"
	rows := make([]JudgementRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		row := JudgementRow{
			GroupID:      group,
			TrajectoryID: trajectory,
			Criterion:    pick(r, []string{"grounded", "matching"}),
			Answer: fmt.Sprintf(
				"north %d",
				r.IntN(9),
			),
			Gold:         pick(r, texts),
			PromptDigest: digestFor(r),
			Model:        "judge-7b",
			AnsweredBy:   pick(r, []string{"", "judge-7b"}),
			Reply:        "I cannot say",
			Attempts:     1 + r.Int32N(5),
		}
		switch pick(r, []string{"", JudgementMatch, JudgementMismatch}) {
		case JudgementMatch:
			row.Verdict, row.Reply = JudgementMatch, "Match"
		case JudgementMismatch:
			row.Verdict, row.Reply = JudgementMismatch, "<Evaluation Rating>: Mismatch"
		default:
			row.Excluded = &why
		}
		rows[i] = row
	}
	return rows
}

func branchRows(r *rand.Rand, n int) []BranchRow {
	rows := make([]BranchRow, n)
	for i := range rows {
		group, trajectory := ids(i / 3)
		row := BranchRow{GroupID: group, TrajectoryID: trajectory, Turn: int32(i % 3), Role: RoleRoot,
			Streak: r.Int32N(4), Entropy: new(r.ExpFloat64())}
		switch {
		case i%3 == 1 && i/3%4 > 0:
			row.Role, row.Parent, row.Shared = RoleBranch, new(TrajectoryID(3, i/12, 0)), new(r.Int32N(100))
		case r.IntN(2) == 0:
			row.Change, row.Base, row.Probability, row.Copies = new(r.NormFloat64()), new(r.Float64()),
				new(r.Float64()), r.Int32N(3)
		case r.IntN(2) == 0:
			row.Role, row.Entropy = RoleMonitor, nil
		}
		rows[i] = row
	}
	return rows
}

func functionScoreRows(r *rand.Rand, n int) []FunctionScoreRow {
	why := "reward function: ValueError: no such word"
	rows := make([]FunctionScoreRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		row := FunctionScoreRow{GroupID: group, TrajectoryID: trajectory, Function: "scoring:length"}
		switch r.IntN(3) {
		case 0:
			row.Excluded = &why
		case 1:
			row.Success = new(r.IntN(2) == 0)
			fallthrough
		default:
			row.Score = new(r.NormFloat64())
		}
		rows[i] = row
	}
	return rows
}

func behaviourRows(r *rand.Rand, n int) []BehaviourRow {
	rows := make([]BehaviourRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		rows[i] = BehaviourRow{GroupID: group, TrajectoryID: trajectory, PolicyVersion: Digest([]byte{byte(r.IntN(3))}),
			LogProbs: make([]float32, r.IntN(9))}
		for j := range rows[i].LogProbs {
			rows[i].LogProbs[j] = -float32(r.ExpFloat64())
			if i%2 == 0 {
				rows[i].LossMask = append(rows[i].LossMask, int32(j%2))
				rows[i].LogProbs[j] *= float32(j % 2)
			}
		}
	}
	return rows
}

func tokenOutputsRows(r *rand.Rand, n int) []TokenOutputsRow {
	rows := make([]TokenOutputsRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		row := TokenOutputsRow{GroupID: group, TrajectoryID: trajectory}
		count := r.IntN(30)
		if r.IntN(5) > 0 { // earlier versions had no mask
			row.LossMask = make([]int32, count)
			for j := range row.LossMask {
				row.LossMask[j] = r.Int32N(2)
			}
		}
		list := func(sign float64) []float32 {
			out := make([]float32, count)
			for j := range out {
				if row.LossMask == nil || row.LossMask[j] == 1 {
					out[j] = float32(sign * r.ExpFloat64())
				}
			}
			return out
		}
		if r.IntN(2) == 0 {
			row.OldLogProbs, row.PolicyVersion = list(-1), digestFor(r)
		}
		if r.IntN(2) == 0 {
			row.Entropies, row.PolicyVersion = list(1), digestFor(r)
		}
		if r.IntN(2) == 0 {
			row.ReferenceLogProbs, row.ReferenceVersion = list(-1), digestFor(r)
		}
		if r.IntN(2) == 0 {
			row.Values, row.CriticVersion = list(r.NormFloat64()), digestFor(r)
		}
		rows[i] = row
	}
	return rows
}

func replayRows(r *rand.Rand, n int) []ReplayRow {
	rows := make([]ReplayRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		count := r.IntN(30)
		rows[i] = ReplayRow{GroupID: group, TrajectoryID: trajectory, Collected: 3, Reward: r.NormFloat64(),
			Advantage: 0.1 + r.Float64(),
			TokenIDs:  tokens(r, count), LossMask: make([]int32, count), OldLogProbs: make([]float32, count)}
		if i%2 == 0 {
			rows[i].Turn = new(int32(i))
		}
		for j := range count {
			if rows[i].LossMask[j] = r.Int32N(2); rows[i].LossMask[j] == 1 {
				rows[i].OldLogProbs[j] = -float32(r.ExpFloat64())
			}
		}
	}
	return rows
}

func baselineRows(r *rand.Rand, n int) []BaselineRow {
	rows := make([]BaselineRow, n)
	for i := range rows {
		rows[i] = BaselineRow{GroupID: GroupID(3+i/4, i%4), Collected: int32(3 + i/4), Mean: r.NormFloat64()}
	}
	return rows
}

func updateRows(r *rand.Rand, n int) []UpdateRow {
	rows := make([]UpdateRow, n)
	for i := range rows {
		rows[i] = UpdateRow{OptimizerStep: 10 + int64(i), Minibatch: int32(i), Rows: r.Int32N(99),
			Tokens: r.Int64N(1 << 40), Loss: r.NormFloat64(),
			KL: r.NormFloat64(), ClipFraction: r.Float64(), Entropy: new(r.Float64()), RatioMax: 1 + r.Float64(),
			GradNorm: new(r.Float64()), LR: 1e-3,
			PolicyBefore: digestFor(r)}
	}
	for i := range rows {
		if share := r.Float64(); r.IntN(3) > 0 {
			rows[i].ClipFractionPositive, rows[i].ClipFractionNegative = &share, new(float64)
		}
		if i%2 == 1 {
			rows[i].ReferenceKL = new(r.NormFloat64())
			rows[i].ValueLoss, rows[i].ValueGradNorm, rows[i].ExplainedVariance = new(r.Float64()), new(r.Float64()),
				pick(r, []*float64{nil, new(r.NormFloat64())})
			rows[i].ValueClipFraction, rows[i].ValueMean, rows[i].ReturnMean = new(r.Float64()), new(r.NormFloat64()),
				new(r.NormFloat64())
			rows[i].AdvantageMean, rows[i].AdvantageStd = new(r.NormFloat64()), new(r.Float64())
			rows[i].AdvantageMin, rows[i].AdvantageMax = new(-3*r.Float64()), new(3*r.Float64())
			rows[i].AdvantageZero, rows[i].AdvantagePositive = new(r.Float64()), new(r.Float64())
			rows[i].BelowPositive, rows[i].AboveNegative, rows[i].DualClipFraction = new(r.Float64()), new(r.Float64()),
				new(r.Float64())
		}
	}
	for i := range rows {
		if i%3 > 0 {
			rows[i].Source = new([]string{SourcePolicy, SourceReplay}[i%3-1])
		}
	}
	for i := range rows {
		if i%4 > 0 {
			rows[i].Epoch, rows[i].BatchRows = new(int32(i/4)), tokens(r, r.IntN(9))
		}
	}
	if n > 0 {
		rows[n-1].PolicyAfter = digestFor(r)
	}
	return rows
}

func evaluationRows(r *rand.Rand, n int) []EvaluationRow {
	rows := make([]EvaluationRow, n)
	for i := range rows {
		rows[i] = EvaluationRow{Tag: pick(r, []string{"warm_start", "step", "final"}),
			ProblemID: Digest(fmt.Append(nil, i/4)), Level: r.Int32N(5), Sample: int32(i % 4),
			Greedy: r.IntN(2) == 0, Success: r.IntN(2) == 0, ToolCalls: 2, ToolErrors: r.Int32N(3), Turns: r.Int32N(4),
			Tokens:      r.Int32N(99),
			FinalAnswer: pick(r, texts), Gold: pick(r, texts), PolicyVersion: digestFor(r)}
		if i%3 > 0 {
			_, trajectory := ids(i)
			rows[i].TrajectoryID, rows[i].ResponseTokens = &trajectory, new(rows[i].Tokens/2)
		}
		if i%3 == 1 {
			rows[i].TaskType, rows[i].Score = new(pick(r, texts)), new(r.Float64())
		}
		if i%3 == 2 {
			rows[i].ExactMatch, rows[i].F1 = new(r.IntN(2) == 0), new(r.Float64())
		}
	}
	Sort(rows)
	return rows
}

func debateRows(r *rand.Rand, n int) []EvaluationDebateRow {
	rows := make([]EvaluationDebateRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		rows[i] = EvaluationDebateRow{GroupID: group, Sample: int32(i % 4), Round: r.Int32N(3), Agent: r.Int32N(5),
			TrajectoryID: trajectory, Candidate: pick(r, texts), Chosen: i%3 == 0, Drawn: i%6 == 0,
			TokenIDs: []int32{}, LogProbs: []float32{}, PolicyVersion: digestFor(r)}
		if i%5 == 0 {
			rows[i].Candidate, rows[i].Abstained = "", true
		}
		if i%2 == 0 {
			read := r.IntN(5)
			rows[i].Turn, rows[i].Response = r.Int32N(9), new(pick(r, texts))
			rows[i].ContextTokens, rows[i].TokenIDs = new(int32(read)), tokens(r, read+3)
			rows[i].LogProbs = []float32{-r.Float32(), -r.Float32(), -r.Float32()}
		}
	}
	Sort(rows)
	return rows
}

func taskRows(r *rand.Rand, n int) []TaskRow {
	rows := make([]TaskRow, n)
	for i := range rows {
		rows[i] = TaskRow{Place: int32(i), TaskID: Digest(fmt.Append(nil, i)), Level: 1 + r.Int32N(3), Kept: i%3 > 0}
		if !rows[i].Kept {
			rows[i].Reason, rows[i].Detail = "duplicate", new("of task x")
		}
		if i%2 == 0 {
			rows[i].Samples, rows[i].Correct = new(int32(8)), new(r.Int32N(9))
		} else {
			rows[i].Answers, rows[i].Matched = new(int32(16)), new(r.Int32N(17))
		}
	}
	return rows
}

func taskAnswerRows(r *rand.Rand, n int) []TaskAnswerRow {
	rows := make([]TaskAnswerRow, n)
	for i := range rows {
		rows[i] = TaskAnswerRow{Place: int32(i / 4), TaskID: Digest(fmt.Append(nil, i/4)), Sample: int32(i % 4),
			Matched: r.IntN(2) == 0, FinalAnswer: pick(r, texts), HasAnswer: true, Gold: pick(r, texts),
			Turns: 1 + r.Int32N(3), ToolCalls: r.Int32N(3), ResponseTokens: r.Int32N(99), Finish: "answered",
			Text: pick(r, texts), PolicyVersion: digestFor(r)}
	}
	return rows
}

func timingRows(r *rand.Rand, n int) []TimingRow {
	rows := make([]TimingRow, n)
	for i := range rows {
		start := int64(1_700_000_000_000_000) + r.Int64N(1<<40)
		rows[i] = TimingRow{Stage: pick(r, []string{StageRollout, StageReward}), Shard: r.Int32N(4) - 1,
			Turn: r.Int32N(4) - 1, Kind: pick(r, []string{"activity", "tool_call"}),
			TrajectoryID: pick(r, []string{"", TrajectoryID(3, 0, i%4)}), Call: r.Int32N(3) - 1, StartMicros: start,
			EndMicros: new(start + r.Int64N(1e6)), QueueSeconds: r.Float64(),
			CPUSeconds: r.Float64(), Attempt: 1, Host: "worker-1", Rows: r.Int64N(100), Tokens: r.Int64N(1000)}
		if i%3 == 2 {
			rows[i].Traced("0af7651916cd43dd8448eb211c80319c", fmt.Sprintf("%016x", i))
		}
		if i%5 == 4 {
			rows[i].Kind, rows[i].EndMicros, rows[i].Shared = "tool_call", nil, new(true)
		}
	}
	Sort(rows)
	return rows
}

func batchRows(r *rand.Rand, n int) []BatchRow {
	rows := make([]BatchRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		count := r.IntN(40)
		row := BatchRow{GroupID: group, TrajectoryID: trajectory, Count: 1 + r.Int32N(3), Weight: r.Float64(),
			TokenIDs: tokens(r, count),
			LossMask: make([]int32, count), Advantages: make([]float32, count)}
		if r.IntN(3) > 0 {
			row.OldLogProbs = make([]float32, count)
		}
		for j := range count {
			if row.LossMask[j] = r.Int32N(2); row.LossMask[j] == 1 {
				row.Advantages[j] = float32(r.NormFloat64())
			}
			if row.OldLogProbs != nil {
				row.OldLogProbs[j] = -float32(r.ExpFloat64())
			}
		}
		switch i % 3 {
		case 1:
			row.RolloutLogProbs = row.OldLogProbs
		case 2:
			row.RolloutLogProbs, row.ReferenceLogProbs = make([]float32, count), make([]float32, count)
			row.Values, row.Returns, row.Turn = make([]float32, count), make([]float32, count), new(int32(i%2))
		}
		rows[i] = row
	}
	return rows
}

// tableCase is one table seen without its row type, for the tests that treat all tables alike.
type tableCase struct {
	table  Table
	rows   func(seed uint64, n int) any
	encode func(rows any, groupBytes int) ([]byte, error)
	decode func([]byte) (any, error)
}

func parquetCase[R Row](rows func(*rand.Rand, int) []R) tableCase {
	return tableCase{
		table:  TableOf[R](),
		rows:   func(seed uint64, n int) any { return rows(rand.New(rand.NewPCG(seed, 1)), n) },
		encode: func(rows any, groupBytes int) ([]byte, error) { return encode(rows.([]R), groupBytes) },
		decode: func(data []byte) (any, error) {
			rows, err := Decode[R](data)
			return rows, err
		},
	}
}

// like draws rows of a table that has the columns of another.
func like[A, B any](rows func(*rand.Rand, int) []A, convert func(A) B) func(*rand.Rand, int) []B {
	return func(r *rand.Rand, n int) []B {
		out := make([]B, n)
		for i, row := range rows(r, n) {
			out[i] = convert(row)
		}
		return out
	}
}

func tableCases() []tableCase {
	return []tableCase{
		parquetCase(promptRows),
		parquetCase(turnRows),
		parquetCase(toolCallRows),
		parquetCase(transitionRows),
		parquetCase(trajectoryRows),
		parquetCase(gradingRows),
		parquetCase(rewardRows),
		parquetCase(selectionRows),
		parquetCase(tokenOutputsRows),
		parquetCase(replayRows),
		parquetCase(baselineRows),
		parquetCase(updateRows),
		parquetCase(evaluationRows),
		parquetCase(timingRows),
		parquetCase(taskRows),
		parquetCase(debateRows),
		parquetCase(taskAnswerRows),
		batchCase(Batch),
		batchCase(ReplayBatch),
		parquetCase(like(trajectoryRows, func(r TrajectoryRow) ImportedRow { return ImportedRow(r) })),
		parquetCase(like(promptRows, func(r PromptRow) EvaluationPromptRow { return EvaluationPromptRow(r) })),
		parquetCase(like(turnRows, func(r TurnRow) EvaluationTurnRow { return EvaluationTurnRow(r) })),
		parquetCase(judgementRows),
		parquetCase(functionScoreRows),
		parquetCase(behaviourRows),
		parquetCase(branchRows),
		parquetCase(
			like(judgementRows, func(r JudgementRow) EvaluationJudgementRow { return EvaluationJudgementRow(r) }),
		),
		parquetCase(like(toolCallRows, func(r ToolCallRow) EvaluationCallRow { return EvaluationCallRow(r) })),
		parquetCase(like(transitionRows, func(r TransitionRow) EvaluationTransitionRow {
			return EvaluationTransitionRow(r)
		})),
		parquetCase(like(trajectoryRows, func(r TrajectoryRow) EvaluationTrajectoryRow {
			return EvaluationTrajectoryRow(r)
		})),
	}
}

func batchCase(table Table) tableCase {
	return tableCase{
		table: table,
		rows:  func(seed uint64, n int) any { return batchRows(rand.New(rand.NewPCG(seed, 1)), n) },
		encode: func(rows any, groupBytes int) ([]byte, error) {
			return encodeBatch(table, rows.([]BatchRow), groupBytes)
		},
		decode: func(data []byte) (any, error) {
			rows, err := decodeBatch(table, data)
			return rows, err
		},
	}
}

func encodeFixture(c tableCase, seed uint64, n int) []byte {
	data, err := c.encode(c.rows(seed, n), rowGroupBytes)
	if err != nil {
		panic(err)
	}
	return slices.Clone(data)
}
