package recordtest

import (
	"context"
	"fmt"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// rows are one shard's rows of a step.
type rows struct {
	turns        [2][]schema.TurnRow // by turn
	calls        []schema.ToolCallRow
	timings      []schema.TimingRow // of the calls
	trajectories []schema.TrajectoryRow
	rewards      []schema.RewardRow
	unscored     []schema.SelectionRow
}

// shardManifests holds one shard's manifests of a step.
type shardManifests struct {
	turns                            [2][]schema.Ref // by turn
	tools, assembled, graded, scored []schema.Ref
}

// step commits one pass of every stage, in their order, and the head.
func (r *Run) step(step int) {
	prompts := put(r, r.manifest(schema.At(r.Run, step, schema.StagePrompts)), promptRows(step))
	r.spend(schema.StagePrompts, -1, -1, Groups, 0)
	var all shardManifests
	for shard := range Shards {
		if step == r.Skipped && shard == Shards-1 {
			continue
		}
		r.commitShard(&all, step, shard, prompts, r.shardRows(step, shard), [2]int64{30, 10})
	}
	inputs, heads := r.selected(step, prompts, all, r.selectionRows(step))
	if r.Outputs {
		outputs := r.logprobs(step, all.turns, inputs[len(inputs)-1])
		inputs, heads = append(inputs, outputs), append(heads, outputs)
	}
	batch := r.batch(step, inputs...)
	learnt := []schema.Ref{batch}
	if r.Buffer {
		r.replayed(step, inputs[2], batch)
		learnt, heads = append(learnt, r.buffer), append(heads, r.buffer)
	}
	update := r.update(step, learnt...)
	publish := r.publish(step, update)
	r.spend(schema.StagePublish, -1, -1, 0, 0)
	if r.Open && step == r.Steps {
		return
	}
	r.headOf(step, append(heads, batch, update, publish)...)
	r.recordTimings(step, "timings_step")
}

// selected commits the stage manifests of a step's shards and the rows of its selection. It returns what the batch is
// made from (the rollout's turns, rewards and selection, in this order) and what the head names.
func (r *Run) selected(step int, prompts schema.Ref, all shardManifests, rows []schema.SelectionRow) (
	inputs, heads []schema.Ref) {
	rollout0 := r.stage(step, schema.StageRollout, 0, all.turns[0]...)
	sandbox := r.stage(step, schema.StageSandbox, 0, all.tools...)
	rollout1 := r.stage(step, schema.StageRollout, 1, all.turns[1]...)
	assemble := r.stage(step, schema.StageAssemble, -1, all.assembled...)
	var grade []schema.Ref
	if r.Gradings {
		grade = append(grade, r.stage(step, schema.StageGrade, -1, all.graded...))
	}
	reward := r.stage(step, schema.StageReward, -1, all.scored...)
	selection := put(r, r.resampled(step, prompts, reward), rows)
	r.spend(schema.StageResample, -1, -1, int64(len(rows)), 0)
	return []schema.Ref{rollout0, rollout1, reward, selection},
		append([]schema.Ref{prompts, rollout0, sandbox, rollout1, assemble, reward, selection}, grade...)
}

// stage commits the stage manifest of what was done shard by shard.
func (r *Run) stage(step int, stage string, turn int, parts ...schema.Ref) schema.Ref {
	m := r.manifest(schema.At(r.Options.Run, step, stage).WithTurn(turn))
	m.Parts = parts
	return r.commit(m)
}

// commitShard commits the stages of one shard from prompts to rewards, and adds their manifests to all. tokens are how
// many each turn generated; where that is 0, its manifest does not tell.
func (r *Run) commitShard(all *shardManifests, step, shard int, prompts schema.Ref, work rows, tokens [2]int64) {
	at := func(stage string, turn int) schema.Place {
		return schema.At(r.Options.Run, step, stage).WithTurn(turn).WithShard(shard)
	}
	sample := func(turn int, inputs ...schema.Ref) schema.Ref {
		m := r.manifest(at(schema.StageRollout, turn), append([]schema.Ref{prompts, r.policy}, inputs...)...)
		if tokens[turn] > 0 {
			m.Stats = map[string]float64{schema.StatTokens: float64(tokens[turn])}
		}
		ref := put(r, m, work.turns[turn])
		all.turns[turn] = append(all.turns[turn], ref)
		r.spend(schema.StageRollout, shard, turn, int64(len(work.turns[turn])), tokens[turn])
		return ref
	}
	first := sample(0)
	tools := put(r, r.manifest(at(schema.StageSandbox, 0), prompts, first), work.calls)
	all.tools = append(all.tools, tools)
	r.spend(schema.StageSandbox, shard, 0, int64(len(work.calls)), 0)
	r.timed = append(r.timed, put(r, r.manifest(at("timings_calls", 0)), work.timings))
	second := sample(1, first, tools)
	assembled := put(r, r.manifest(at(schema.StageAssemble, -1), prompts, first, second, tools), work.trajectories)
	all.assembled = append(all.assembled, assembled)
	r.spend(schema.StageAssemble, shard, -1, int64(len(work.trajectories)), 0)
	judged := []schema.Ref{assembled}
	if r.Gradings {
		graded := put(r, r.manifest(at(schema.StageGrade, -1), assembled), gradings(work))
		all.graded, judged = append(all.graded, graded), append(judged, graded)
		r.spend(schema.StageGrade, shard, -1, int64(len(work.rewards)), 0)
	}
	scored := r.manifest(at(schema.StageReward, -1), judged...)
	if len(work.unscored) > 0 {
		addShard(r, &scored, work.unscored)
	}
	all.scored = append(all.scored, put(r, scored, work.rewards))
	r.spend(schema.StageReward, shard, -1, int64(len(work.rewards)), 0)
}

// gradings are the symbolic verdicts on a shard's wrong answers.
func gradings(work rows) []schema.GradingRow {
	var out []schema.GradingRow
	for i, r := range work.rewards {
		if r.Success {
			continue
		}
		row := schema.GradingRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Answer: "x+2", Gold: "1+x",
			Verdict: schema.GradingDifferent, Grader: "sympy 1.14.0"}
		if i%2 == 1 {
			row.Answer, row.Verdict = "north", schema.GradingUnreadable
		}
		out = append(out, row)
	}
	return out
}

func (r *Run) callTimings(calls []schema.ToolCallRow) []schema.TimingRow {
	out := make([]schema.TimingRow, len(calls))
	for i, c := range calls {
		out[i] = schema.TimingRow{
			Stage: schema.StageSandbox, Kind: "tool_call", TrajectoryID: c.TrajectoryID, Turn: c.Turn, Call: c.Call,
			StartMicros: Start, EndMicros: new(int64(Start + 1000)), Host: "host", Rows: 1,
		}
		out[i].Traced(r.Trace, Span)
	}
	return out
}

// Right reports whether a sample of a group solves its problem at a step.
func Right(step, group, sample int) bool { return group == Groups-1 || sample < step }

func promptRows(step int) []schema.PromptRow {
	out := make([]schema.PromptRow, Groups)
	for g := range out {
		out[g] = schema.PromptRow{
			GroupID: schema.GroupID(step, g), ProblemID: fmt.Sprintf("p%d-%d", step, g), Level: int32(2 + g),
			Problem: fmt.Sprintf("What is %d + %d?", step, g), Answer: strconv.Itoa(step + g),
			Expression: fmt.Sprintf("%d+%d", step, g), TokenIDs: []int32{1, 2, 3},
		}
	}
	return out
}

func (r *Run) shardRows(step, shard int) rows {
	var out rows
	for g := range Groups {
		if (g == Groups-1) != (shard == Shards-1) {
			continue
		}
		for k := range Samples {
			r.episode(&out, step, g, k)
		}
	}
	out.timings = r.callTimings(out.calls)
	return out
}

// episode adds one sample's rows.
func (r *Run) episode(out *rows, step, g, k int) {
	group, id := schema.GroupID(step, g), schema.TrajectoryID(step, g, k)
	policy := r.Updates[len(r.Updates)-1].Checkpoint.Digest
	if why, broken := r.Broken[id]; broken {
		out.broken(group, id, policy, why, step, g)
		return
	}
	p, answer := promptRows(step)[g], "-1"
	if Right(step, g, k) {
		answer = p.Answer
	}
	calls := (k + 1) % 2
	answered := schema.TurnRow{
		GroupID: group, TrajectoryID: id, Turn: int32(calls), ContextTokens: 3, TokenIDs: []int32{1, 2, 3, 4, 5},
		LossMask: []int32{0, 0, 0, 1, 1},
		LogProbs: []float32{0, 0, 0, -0.5, -0.25}, Entropies: []float32{0, 0, 0, 0.75, 0.5},
		Response: "<answer>\\boxed{" + answer + "}</answer>", Finish: "stop", Answered: true, AnchorHash: "a",
		PolicyVersion: policy, Lag: new(int32(0)),
	}
	failed := int32(0)
	if calls > 0 {
		call := schema.ToolCallRow{
			GroupID: group, TrajectoryID: id, Name: "python", Arguments: "{}",
			Code:   fmt.Sprintf("print(%d+%d)", step, g),
			Status: "ok", Stdout: strconv.Itoa(step+g) + "\n", Response: strconv.Itoa(step + g),
		}
		if k == 2 {
			failed = 1
			call.Code, call.Status, call.ExitCode, call.Stdout, call.Stderr, call.Response = "print(x)",
				"runtime_error", 1, "", "NameError: name 'x' is not defined\n", "NameError: name 'x' is not defined"
		}
		asked := answered
		asked.Turn, asked.Response, asked.ToolCalls, asked.Answered = 0, "I compute it. "+call.Code, 1, false
		answered.Observation = call.Response
		out.calls = append(out.calls, call)
		out.turns[0] = append(out.turns[0], asked)
	}
	out.turns[calls] = append(out.turns[calls], answered)
	out.judge(p, schema.TrajectoryRow{TrajectoryID: id, Turns: int32(calls + 1), ToolCalls: int32(calls),
		ToolErrors: failed, Tokens: 10, ResponseTokens: 4, FinalAnswer: answer, PolicyVersion: policy,
		Text: answered.Response})
}

// judge adds a sample that has answered, and its reward.
func (out *rows) judge(p schema.PromptRow, row schema.TrajectoryRow) {
	row.GroupID, row.ProblemID, row.Level, row.Gold = p.GroupID, p.ProblemID, p.Level, p.Answer
	row.Source, row.Finish, row.AnswerTags, row.HasAnswer = "rollout", "answered", 1, true
	out.trajectories = append(out.trajectories, row)
	reward := schema.RewardRow{GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Level: row.Level,
		Success: row.FinalAnswer == row.Gold, Turns: row.Turns, ToolCalls: row.ToolCalls, ToolErrors: row.ToolErrors,
		AnswerTags: 1, Verdict: "wrong"}
	if reward.Success {
		reward.Reward, reward.Outcome, reward.Verdict = 1, 1, "exact"
	}
	out.rewards = append(out.rewards, reward)
}

func (r *Run) selectionRows(step int) []schema.SelectionRow {
	var out []schema.SelectionRow
	for g := range Groups {
		for k := range Samples {
			row := schema.SelectionRow{GroupID: schema.GroupID(step, g), TrajectoryID: schema.TrajectoryID(step, g, k),
				Kept: true, Count: 2, Weight: 1.5, GroupMean: 0.5, GroupVariance: 0.25}
			if g == Groups-1 {
				row.Reason = "zero_variance"
			} else if k == Samples-1 {
				row.Reason = "roc_negative_surplus"
			}
			why, broken := r.Broken[row.TrajectoryID]
			if step == r.Skipped && g == Groups-1 {
				why, broken = "shard 1 was skipped after its sandbox failed: no usable python interpreter", true
			}
			if broken {
				row.Reason, row.Excluded = schema.ReasonExcluded, &why
			}
			if row.Reason != "" {
				row.Kept, row.Count, row.Weight = false, 0, 0
			}
			out = append(out, row)
		}
	}
	return out
}

// kept calls f with each row that a step's selection keeps, its group and its sample.
func (r *Run) kept(step int, f func(s schema.SelectionRow, g, k int)) {
	for _, s := range r.selectionRows(step) {
		_, g, k, err := schema.ParseTrajectoryID(s.TrajectoryID)
		require.NoError(r.t, err)
		if s.Kept {
			f(s, g, k)
		}
	}
}

// logprobs commits the old log-probabilities of the kept rows, shard by shard.
func (r *Run) logprobs(step int, turns [2][]schema.Ref, selection schema.Ref) schema.Ref {
	rows := make([][]schema.TokenOutputsRow, Shards)
	r.kept(step, func(s schema.SelectionRow, g, _ int) {
		rows[g/2] = append(rows[g/2], schema.TokenOutputsRow{
			GroupID: s.GroupID, TrajectoryID: s.TrajectoryID, OldLogProbs: []float32{0, 0, 0, -0.5, -0.25},
			PolicyVersion: r.Updates[len(r.Updates)-1].Checkpoint.Digest, LossMask: []int32{0, 0, 0, 1, 1},
		})
	})
	return r.putOutputs(step, turns, selection, rows)
}

// putOutputs commits what the models computed about the kept rows, shard by shard.
func (r *Run) putOutputs(step int, turns [2][]schema.Ref, selection schema.Ref,
	rows [][]schema.TokenOutputsRow) schema.Ref {
	var parts []schema.Ref
	for shard := range turns[0] {
		m := r.manifest(schema.At(r.Options.Run, step, schema.StageLogprobs).WithShard(shard), turns[0][shard],
			turns[1][shard], selection, r.policy)
		parts = append(parts, put(r, m, rows[shard]))
		r.spend(schema.StageLogprobs, shard, -1, int64(len(rows[shard])), 0)
	}
	return r.stage(step, schema.StageLogprobs, -1, parts...)
}

// batch commits the kept rows with an advantage of ±1 before its weight.
func (r *Run) batch(step int, inputs ...schema.Ref) schema.Ref {
	var out []schema.BatchRow
	r.kept(step, func(s schema.SelectionRow, g, k int) {
		a := float32(s.Weight)
		if !Right(step, g, k) {
			a = -a
		}
		out = append(out, schema.BatchRow{
			GroupID: s.GroupID, TrajectoryID: s.TrajectoryID, Count: s.Count, Weight: s.Weight,
			TokenIDs: []int32{1, 2, 3, 4, 5}, LossMask: []int32{0, 0, 0, 1, 1},
			OldLogProbs: []float32{0, 0, 0, -0.5, -0.25}, Advantages: []float32{0, 0, 0, a, a},
		})
	})
	r.spend(schema.StageAdvantage, -1, -1, int64(len(out)), 0)
	return r.putBatch(r.manifest(schema.At(r.Run, step, schema.StageAdvantage), inputs...), out)
}

// replayed updates the replay buffer in a step.
func (r *Run) replayed(step int, reward, batch schema.Ref) {
	inputs := []schema.Ref{reward, batch}
	if step > 1 {
		inputs = append([]schema.Ref{r.buffer}, inputs...)
	}
	m := r.manifest(schema.At(r.Run, step, schema.StageBuffer), inputs...)
	var again []schema.BatchRow
	if step%3 == 0 {
		for _, row := range r.held {
			again = append(again, schema.BatchRow{
				GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Count: 1, Weight: 1, TokenIDs: row.TokenIDs,
				LossMask:    row.LossMask,
				OldLogProbs: row.OldLogProbs, Advantages: []float32{0, 0, 0, 0.5, 0.5},
			})
		}
		r.held = nil
	} else {
		r.kept(step, func(s schema.SelectionRow, g, k int) {
			if Right(step, g, k) {
				r.held = append(r.held, schema.ReplayRow{
					GroupID: s.GroupID, TrajectoryID: s.TrajectoryID, Collected: int32(step), Reward: 1,
					Advantage: s.Weight,
					TokenIDs:  []int32{1, 2, 3, 4, 5}, LossMask: []int32{0, 0, 0, 1, 1},
					OldLogProbs: []float32{0, 0, 0, -0.5, -0.25},
				})
			}
		})
	}
	var baselines []schema.BaselineRow
	for g := range Groups {
		baselines = append(baselines, schema.BaselineRow{GroupID: schema.GroupID(step, g), Collected: int32(step),
			Mean: 0.5})
	}
	addShard(r, &m, baselines)
	if step%3 == 0 {
		data, err := schema.EncodeReplayBatch(again)
		require.NoError(r.t, err)
		info, err := r.writer.Shard(context.Background(), m.Place, schema.ReplayBatch, data, len(again))
		require.NoError(r.t, err)
		m.Shards = append(m.Shards, info)
	}
	r.buffer = put(r, m, r.held)
	r.spend(schema.StageBuffer, -1, -1, int64(len(r.held)), 0)
}

func (r *Run) update(step int, learnt ...schema.Ref) schema.Ref {
	out := make([]schema.UpdateRow, 2)
	for i := range out {
		out[i] = schema.UpdateRow{
			OptimizerStep: int64(2*step + i), Minibatch: int32(i), Rows: 3, Tokens: 6, Loss: 0.5,
			KL: 0.01 * float64(i+1), ClipFraction: 0.1,
			Entropy: new(0.6), RatioMax: 1.5, GradNorm: new(2.0), LR: 1e-3,
			AdvantageMean: new(0.75 * float64(i)), AdvantageStd: new(1.5), AdvantageMin: new(-1.5),
			AdvantageMax: new(1.5), AdvantageZero: new(0.0), AdvantagePositive: new(0.5),
		}
		if r.Episodes {
			out[i].Epoch, out[i].BatchRows = new(int32), []int32{2, 0, 1}
		}
		if r.Critic {
			out[i].ValueLoss, out[i].ValueGradNorm, out[i].ExplainedVariance = new(0.25/float64(step)), new(1.0),
				new(1-1/float64(step))
			out[i].ValueClipFraction, out[i].ValueMean, out[i].ReturnMean = new(0.125), new(0.25), new(0.5)
		}
		if r.Outputs {
			out[i].ReferenceKL = new(0.02 * float64(i+1))
			out[i].ClipFractionPositive, out[i].ClipFractionNegative = new(0.04), new(0.06)
			out[i].BelowPositive, out[i].AboveNegative, out[i].DualClipFraction = new(0.02), new(0.03), new(0.01)
		}
	}
	return r.putUpdate(step, out, 6, 12, learnt...)
}

// putUpdate commits an update of some rows and tokens with its checkpoint.
func (r *Run) putUpdate(step int, out []schema.UpdateRow, rows, tokens int64, learnt ...schema.Ref) schema.Ref {
	m := r.manifest(schema.At(r.Options.Run, step, schema.StageUpdate), append(learnt, r.policy)...)
	for i := range out {
		out[i].PolicyBefore = r.Updates[len(r.Updates)-1].Checkpoint.Digest
	}
	checkpoint := r.checkpoint(m.Place, step)
	m.Checkpoint = &checkpoint
	out[len(out)-1].PolicyAfter = checkpoint.Digest
	r.policy = put(r, m, out)
	r.Updates = append(r.Updates, m)
	r.spend(schema.StageUpdate, -1, -1, rows, tokens)
	return r.policy
}
