package recordtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// LargeOptions give the size of a run with random rows.
type LargeOptions struct {
	Run                     string
	Steps                   int
	Groups, Samples, Shards int // of a step; shards divide groups
	EvaluateEvery           int
	Problems                int    // of an evaluation
	Seed                    uint64 // of all random rows
	// Response, if not "", replaces every random response.
	Response string
	// Recompute makes the stage logprobs compute log-probabilities of the kept trajectories, under the policy before
	// the update and under a reference.
	Recompute bool
}

// Large commits a run with random rows: policies that learn, texts that its tokenizer splits, tools that fail, groups
// without variance. It has the shape of a run of the quickstart, at any size.
func Large(t testing.TB, objects store.Store, o LargeOptions) *Run {
	t.Helper()
	r := &Run{Options: Options{Run: o.Run, Steps: o.Steps, Planned: o.Steps, Seed: o.Seed,
		Created: "2026-01-02T03:04:05Z"}, Store: objects, t: t, writer: commit.New(objects), clock: Start}
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	r.tokenizer = tokens.Files()["tokenizer.json"]
	r.prepare()
	r.warmStart()
	l := &large{Run: r, LargeOptions: o, tokens: tokens, rand: rand.New(rand.NewPCG(o.Seed, 7))}
	l.evaluate(-1, "warm_start")
	r.recordTimings(-1, "timings_run")
	for step := 1; step <= o.Steps; step++ {
		l.step(step)
		if step == o.Steps {
			l.evaluate(step, "final")
			r.recordTimings(step, "timings_run")
		} else if o.EvaluateEvery > 0 && step%o.EvaluateEvery == 0 {
			l.evaluate(step, "step")
			r.recordTimings(step, "timings_run")
		}
	}
	return r
}

// large draws one run.
type large struct {
	*Run
	LargeOptions
	tokens *tokenizer.Tokenizer
	rand   *rand.Rand
}

// skill is the probability that a problem of a level is solved after a number of the run's steps.
func (l *large) skill(step, level int) float64 {
	done := float64(step) / float64(l.LargeOptions.Steps)
	return 0.05 + 0.9*(1-math.Exp(-4*done))/(1+0.35*float64(level-2))
}

func (l *large) step(step int) {
	r := l.Run
	prompts := make([]schema.PromptRow, l.Groups)
	for g := range prompts {
		a, b := 10+l.rand.IntN(90), 10+l.rand.IntN(90)
		text := fmt.Sprintf("What is %d + %d?", a, b)
		prompts[g] = schema.PromptRow{
			GroupID: schema.GroupID(step, g), ProblemID: fmt.Sprintf("p%d-%d", step, g), Level: int32(2 + g%3),
			Problem: text,
			Answer:  strconv.Itoa(a + b), Expression: fmt.Sprintf("%d+%d", a, b), TokenIDs: l.tokens.Encode(text),
		}
	}
	selected := put(r, r.manifest(schema.At(r.Options.Run, step, schema.StagePrompts)), prompts)
	r.spend(schema.StagePrompts, -1, -1, int64(l.Groups), 0)
	l.finish(step, selected, l.draw(step, prompts))
}

// drawn holds the rows of one shard of a step.
type drawn struct {
	rows
	selection []schema.SelectionRow
	batch     []schema.BatchRow
}

// draw makes every shard's rows, and selects inside each group.
func (l *large) draw(step int, prompts []schema.PromptRow) []drawn {
	out := make([]drawn, l.Shards)
	for g, p := range prompts {
		d := &out[g*l.Shards/l.Groups]
		first := len(d.rewards)
		for k := range l.Samples {
			l.episode(d, step, g, k, p)
		}
		l.choose(d, first)
	}
	return out
}

func (l *large) episode(d *drawn, step, g, k int, p schema.PromptRow) {
	group, id := schema.GroupID(step, g), schema.TrajectoryID(step, g, k)
	policy := l.Updates[len(l.Updates)-1].Checkpoint.Digest
	right, uses := l.rand.Float64() < l.skill(step, int(p.Level)), l.rand.Float64() < 0.8
	fails := uses && l.rand.Float64() < 0.35*math.Exp(-3*float64(step)/float64(l.LargeOptions.Steps))
	answer := p.Answer
	if !right {
		answer = "0"
	}
	context := p.TokenIDs
	var all schema.BatchRow
	calls, failed, turn, observed := 0, 0, 0, ""
	if uses {
		code := "print(" + strings.ReplaceAll(p.Expression, "+", " + ") + ")"
		asked := l.turn(group, id, 0, context, "<reason>I compute "+p.Expression+".</reason>\n"+code, "", policy)
		asked.ToolCalls, calls, turn = 1, 1, 1
		call := schema.ToolCallRow{GroupID: group, TrajectoryID: id, Name: "python", Arguments: "{}", Code: code,
			Status: "ok", Stdout: p.Answer + "\n", Response: p.Answer}
		if fails {
			failed = 1
			call.Status, call.ExitCode, call.Stdout, call.Stderr = "runtime_error", 1, "",
				"NameError: name 'x' is not defined\n"
			call.Response = call.Stderr
		}
		d.turns[0] = append(d.turns[0], asked)
		d.calls = append(d.calls, call)
		d.timings = append(d.timings, l.callTiming(id))
		all = joined(all, asked)
		observed = "\n" + call.Response + "\n"
		context = l.tokens.Encode(observed)
	}
	answered := l.turn(group, id, turn, context, "<answer>\\boxed{"+answer+"}</answer>", observed, policy)
	answered.Answered = true
	d.turns[turn] = append(d.turns[turn], answered)
	all = joined(all, answered)
	all.GroupID, all.TrajectoryID = group, id
	d.batch = append(d.batch, all)
	written := int32(0)
	for _, m := range all.LossMask {
		written += m
	}
	d.judge(p, schema.TrajectoryRow{TrajectoryID: id, Turns: int32(turn + 1), ToolCalls: int32(calls),
		ToolErrors: int32(failed), Tokens: int32(len(all.TokenIDs)), ResponseTokens: written, FinalAnswer: answer,
		PolicyVersion: policy, Text: answered.Response})
}

// turn draws the numbers of a turn's tokens.
func (l *large) turn(group, id string, n int, context []int32, response, observed, policy string) schema.TurnRow {
	if l.Response != "" {
		response = l.Response
	}
	ids := append(append([]int32{}, context...), l.tokens.Encode(response)...)
	row := schema.TurnRow{
		GroupID: group, TrajectoryID: id, Turn: int32(n), ContextTokens: int32(len(context)), TokenIDs: ids,
		LossMask: make([]int32, len(ids)),
		LogProbs: make([]float32, len(ids)), Entropies: make([]float32, len(ids)), Observation: observed,
		Response: response, Finish: "stop",
		AnchorHash: "a", PolicyVersion: policy, Lag: new(int32(0)),
	}
	for i := len(context); i < len(ids); i++ {
		row.LossMask[i] = 1
		row.LogProbs[i], row.Entropies[i] = -float32(0.3*l.rand.ExpFloat64()), float32(0.4*l.rand.ExpFloat64())
	}
	return row
}

// joined adds a turn to a row of the batch.
func joined(row schema.BatchRow, t schema.TurnRow) schema.BatchRow {
	row.TokenIDs = append(row.TokenIDs, t.TokenIDs...)
	row.LossMask = append(row.LossMask, t.LossMask...)
	row.OldLogProbs = append(row.OldLogProbs, t.LogProbs...)
	return row
}

func (l *large) callTiming(id string) schema.TimingRow {
	took := int64(20_000 + 15_000*l.rand.ExpFloat64())
	return schema.TimingRow{Stage: schema.StageSandbox, Kind: "tool_call", TrajectoryID: id, StartMicros: l.clock,
		EndMicros: new(l.clock + took), Host: "host", Rows: 1}
}

// choose keeps half of a group with variance, the wrong ones first, and gives advantages of ±1.
func (l *large) choose(d *drawn, first int) {
	group := d.rewards[first:]
	mean := 0.0
	for _, r := range group {
		mean += r.Reward / float64(len(group))
	}
	left := len(group) / 2
	for i, r := range group {
		row := schema.SelectionRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, GroupMean: mean,
			GroupVariance: mean * (1 - mean), Reason: "roc_positive_surplus"}
		if r.Reward == 0 {
			row.Reason = "roc_negative_surplus"
		}
		switch {
		case mean == 0 || mean == 1:
			row.GroupVariance, row.Reason = 0, "zero_variance"
		case left > 0 && (r.Reward == 0 || len(group)-i <= left || l.rand.IntN(2) == 0):
			row.Kept, row.Count, row.Weight, row.Reason = true, 1+int32(l.rand.IntN(2)), 0.75, ""
			left--
		}
		d.selection = append(d.selection, row)
		b := &d.batch[first+i]
		b.Count, b.Weight, b.Advantages = row.Count, row.Weight, make([]float32, len(b.TokenIDs))
		for t, m := range b.LossMask {
			b.Advantages[t] = float32(m) * float32(2*r.Reward-1) * float32(row.Weight)
		}
	}
}
