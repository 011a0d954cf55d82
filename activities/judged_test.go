package activities_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/searchqa"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/openaitest"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// judgeKey is the secret of the judge in these tests.
const judgeKey = "sk-of-the-judge-in-tests"

// replies are what the engine of these tests answers, and what the judge replies; "" is no answer.
var replies = map[string]string{
	"Velm": "Match", "Norwick": "Mismatch", "Match": "Mismatch", "poison": "The answer says Match.", "": "",
}

// answerer answers at once; a row's stream chooses what.
type answerer struct {
	policy.Engine
	tok *tokenizer.Tokenizer
}

func (a answerer) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	answers := []string{"Velm", "Norwick", "Match", "poison", ""}
	for _, stream := range req.Streams {
		text := "<reasoning></reasoning>"
		if answer := answers[stream>>9%uint64(len(answers))]; answer != "" {
			text += "<answer>" + answer + "</answer>"
		}
		ids := a.tok.Encode(text + protocol.EndOfTurn)
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// judging is a judge that replies by the response in the prompt.
func judging(t *testing.T) *openaitest.Server {
	t.Helper()
	t.Setenv("ROPEWALK_TEST_KEY", judgeKey)
	return openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) {
		_, after, _ := strings.Cut(r.User(), "\n[response ")
		_, after, _ = strings.Cut(after, "]\n")
		response, _, _ := strings.Cut(after, "\n[end of response ")
		openaitest.Say(w, r, replies[response])
	})
}

const judgedRecipe = `version: 1
name: judged
steps: 1
environment: {name: search_qa, settings: {documents: 200, brief: true, results: 2, evaluate: birth_river}}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 256}
warm_start: {steps: 1, batch: 2, optimizer: {lr: 0.001}}
rollout: {mode: %s, prompts: 4, samples_per_prompt: 8, max_turns: 2, max_turn_tokens: 64, max_tokens: 256, shard_groups: 2}
reward: {name: prs_long, judge: server}
judge: {url: "%s", model: judge-7b, key: "${env:ROPEWALK_TEST_KEY}", attempts: 2, concurrency: 4, seconds: 20}
advantage: {name: grpo, std: true}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 3, samples: 4, greedy: false, judged: true}
checkpoint: {every: 0, keep_last: 1}
`

// judgedBench is a worker on a store whose engine is the answerer.
func judgedBench(t *testing.T, objects store.Store) *bench {
	t.Helper()
	tok, err := rollout.TokenizerOf(protocol.PRS, searchqa.SearchQA)
	require.NoError(t, err)
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return answerer{e, tok} },
	})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

// verdictsAre checks every judgement of step 1 against the judge's script, and the rewards against the judgements.
func verdictsAre(t *testing.T, b *bench) (prompts int) {
	t.Helper()
	rewards := map[string]schema.RewardRow{}
	for _, r := range stepRows[schema.RewardRow](t, b.store, "r", 1, schema.StageReward) {
		rewards[r.TrajectoryID] = r
	}
	seen, digests := map[string]bool{}, map[string]bool{}
	judged := stepRows[schema.JudgementRow](t, b.store, "r", 1, schema.StageJudge)
	for _, j := range judged {
		require.Equal(t, []any{"grounded", "judge-7b", "judge-7b", replies[j.Answer]},
			[]any{j.Criterion, j.Model, j.AnsweredBy, j.Reply}, j.Answer)
		seen[j.Answer], digests[j.PromptDigest] = true, true
		r, scored := rewards[j.TrajectoryID]
		if j.Answer == "poison" {
			require.Contains(t, *j.Excluded, "neither Match nor Mismatch")
			require.False(t, scored, "breakage is no reward of 0")
			continue
		}
		require.Equal(t, strings.ToLower(j.Reply), j.Verdict)
		if j.Verdict == schema.JudgementMatch {
			require.GreaterOrEqual(t, r.Reward, 2.1, "process, format and judge")
		} else {
			require.InDelta(t, 1.1, r.Reward, 1e-9, "process and format alone: %s", j.Answer)
		}
	}
	require.Len(t, seen, 4, "all but the trajectories without an answer")
	silent := 0
	for _, r := range rewards {
		if r.Verdict == "no_answer" {
			silent++
			require.Zero(t, r.Reward)
		}
	}
	require.Positive(t, silent, "no judge is asked about them")
	return len(digests)
}

// The judge's verdicts are committed in a stage of its own, in both modes of rollouts with the same rows. Rewards and
// evaluations follow from them, and once they are committed no judge is needed.
func TestAnswersAreJudged(t *testing.T) {
	rows := map[string][]schema.JudgementRow{}
	for _, mode := range []string{"interleaved", "staged"} {
		server := judging(t)
		b := judgedBench(t, mem.New())
		out, err := b.train(
			t,
			workflows.TrainRunInput{Run: "r", RecipeYAML: fmt.Sprintf(judgedRecipe, mode, server.URL)},
		)
		require.NoError(t, err)
		verdictsAre(t, b)
		asked := map[string]int{}
		for _, r := range server.Seen() {
			require.Equal(t, "Bearer "+judgeKey, r.Authorization)
			asked[r.User()]++
		}
		for prompt, times := range asked {
			want := 2 // once by each shard
			if strings.Contains(prompt, "\npoison\n") {
				want = 4 // with the attempts of each
			}
			require.LessOrEqual(t, times, want, prompt)
		}
		require.NotNil(t, out.Final)
		overview, err := analysis.New(b.store).Overview(t.Context(), "r")
		require.NoError(t, err)
		for _, e := range overview.Evaluations {
			require.NotNil(t, e.Judged)
			require.Positive(t, e.Judged.Success)
			require.Less(t, e.Judged.Success, 1.0)
			require.Contains(t, strings.Join(e.More(), "\n"), "judged right")
		}
		view, err := analysis.New(b.store).Step(t.Context(), "r", 1, analysis.Choice{N: 40, Group: analysis.AnyGroup})
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, view.Write(&text))
		require.Regexp(
			t,
			`(?m)^judge judge-7b, grounded: \d+ match, \d+ mismatch, \d+ without a verdict$`,
			text.String(),
		)
		require.Contains(t, text.String(), "judged     grounded: match, by judge-7b (1 requests)")
		secretless(t, b.store)
		rows[mode] = stepRows[schema.JudgementRow](t, b.store, "r", 1, schema.StageJudge)

		server.Close()
		noFaults(t, b)
		checked(t, b.store, "r")
		again, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward"})
		require.NoError(t, err)
		for _, s := range again.Stages {
			require.True(t, s.Same, s.Stage)
		}
		exact, err := runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Set: []string{"reward.judge=exact"}})
		require.NoError(t, err)
		require.False(t, exact.Stages[0].Same, "exact match takes the judge's place")
		_, err = runReplay(t, b.store, workflows.ReplayStageInput{Run: "r", Step: 1, From: "reward",
			Set: []string{"reward={name: prs_general, judge: server, process_gate: -1000}"}})
		require.NoError(t, err, "a general form that asks about the same answers reads the same judgements")
		noFaults(t, b)
	}
	require.Equal(t, rows["interleaved"], rows["staged"])
}

// searcher answers as the answerer, but some of its trajectories search before. These wait until the judge was asked
// about an answer.
type searcher struct {
	answerer
	call   string             // a response that searches
	server *openaitest.Server // nil: they do not wait
	waited *atomic.Int64
}

func (s searcher) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	g, err := s.answerer.Generate(ctx, req)
	for i, prefix := range req.Prefixes {
		switch {
		case req.Evaluation:
		case strings.Contains(s.tok.Decode(prefix), s.call):
			s.waited.Add(1)
			for s.server != nil && len(s.server.Seen()) == 0 {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return g, ctx.Err()
				}
			}
		case req.Streams[i]>>9%4 == 0:
			ids := s.tok.Encode(s.call)
			g.Tokens[i], g.LogProbs[i], g.Entropies[i] = ids, make([]float32, len(ids)), make([]float32, len(ids))
		}
	}
	return g, err
}

// In interleaved mode the judge is asked about an answer before other trajectories of the shard have their last turn,
// which waits here for that. The verdicts are those of mode staged.
func TestAnswersAreJudgedWhileOthersGenerate(t *testing.T) {
	tok, err := rollout.TokenizerOf(protocol.PRS, searchqa.SearchQA)
	require.NoError(t, err)
	call, ok := protocol.PRS.Write(env.Move{Tool: "search", Arguments: `{"query": "Velm"}`})
	require.True(t, ok)
	rows := map[string][]schema.JudgementRow{}
	for _, mode := range []string{"interleaved", "staged"} {
		server := judging(t)
		watched := server
		if mode == "staged" {
			watched = nil
		}
		var waited atomic.Int64
		objects := mem.New()
		deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{Rollout: func(e policy.Engine) policy.Engine {
			return searcher{answerer{e, tok}, call, watched, &waited}
		}})
		b := &bench{store: objects, record: commit.New(objects), deps: deps}
		_, err = b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: fmt.Sprintf(judgedRecipe, mode, server.URL),
			Set: []string{"evaluation.judged=false", "rollout.max_tokens=1024", "policy.max_positions=1024",
				"rollout.shard_groups=4"}})
		require.NoError(t, err)
		require.Positive(t, waited.Load())
		rows[mode] = stepRows[schema.JudgementRow](t, b.store, "r", 1, schema.StageJudge)
		require.NotEmpty(t, rows[mode])
		noFaults(t, b)
	}
	require.Equal(t, rows["interleaved"], rows["staged"])
}

// secretless checks that no object of the store holds the judge's key.
func secretless(t *testing.T, objects store.Store) {
	t.Helper()
	for _, key := range keys(t, objects) {
		data, err := objects.Get(context.Background(), key)
		require.NoError(t, err)
		require.NotContains(t, string(data), judgeKey, key)
	}
}

// A worker that dies after the judge's stage leaves verdicts that the next attempt adopts: nothing is asked again, also
// by a worker that remembers nothing.
func TestCommittedVerdictsAreAdopted(t *testing.T) {
	for _, mode := range []string{"interleaved", "staged"} {
		server := judging(t)
		objects := mem.New()
		in := workflows.TrainRunInput{Run: "r", RecipeYAML: fmt.Sprintf(judgedRecipe, mode, server.URL),
			Set: []string{"evaluation.judged=false"}}
		dying := faults.New(objects, slices.Repeat([]faults.Rule{{Op: faults.PutIfAbsent,
			Key: "manifests/step=1/reward/shard="}}, 40)...)
		_, err := judgedBench(t, dying).train(t, in)
		require.ErrorContains(t, err, "parked")
		before := len(server.Seen())
		require.Positive(t, before)
		server.Close()
		b := judgedBench(t, objects)
		_, err = b.train(t, in)
		require.NoError(t, err)
		verdictsAre(t, b)
		require.Len(t, server.Seen(), before)
		noFaults(t, b)
	}
}

// A run whose judge is away parks with that reason, and goes on where it was when the judge is back.
func TestARunWaitsForItsJudge(t *testing.T) {
	server := judging(t)
	away := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) {
		w.Header().Set("Retry-After", "0.01")
		openaitest.Fail(w, 429, "busy, "+r.Authorization)
	})
	for _, mode := range []string{"interleaved", "staged"} {
		t.Setenv("ROPEWALK_TEST_JUDGE", away.URL)
		objects := mem.New()
		in := workflows.TrainRunInput{Run: "r", Set: []string{"evaluation.judged=false"},
			RecipeYAML: fmt.Sprintf(judgedRecipe, mode, "${env:ROPEWALK_TEST_JUDGE}")}
		_, err := judgedBench(t, objects).train(t, in)
		require.ErrorContains(t, err, "parked")
		require.ErrorContains(t, err, "judge, shard 0: ")
		require.ErrorContains(t, err, "the judge is away: the model's server is throttled: it answers 429")
		require.NotContains(t, err.Error(), judgeKey)
		t.Setenv("ROPEWALK_TEST_JUDGE", server.URL)
		b := judgedBench(t, objects)
		_, err = b.train(t, in)
		require.NoError(t, err)
		verdictsAre(t, b)
		noFaults(t, b)
		secretless(t, objects)
	}
}

// What a person must correct parks the run at once, and names the field.
func TestJudgesThatARunCannotAsk(t *testing.T) {
	server := openaitest.New(t, func(w http.ResponseWriter, r openaitest.Request, _ int) {
		openaitest.SayAs(w, "tiny-1b", "Match", "stop")
	})
	t.Setenv("ROPEWALK_TEST_KEY", judgeKey)
	in := workflows.TrainRunInput{Run: "r", RecipeYAML: fmt.Sprintf(judgedRecipe, "staged", server.URL),
		Set: []string{"evaluation.judged=false"}}
	_, err := judgedBench(t, mem.New()).train(t, in)
	require.ErrorContains(t, err, `judge.model: judge-7b was asked, and "tiny-1b" answers`)

	in.Set = []string{"judge.key=${env:ROPEWALK_TEST_ABSENT}", "evaluation.judged=false"}
	_, err = judgedBench(t, mem.New()).train(t, in)
	require.ErrorContains(t, err, "judge.key: resolve ${env:ROPEWALK_TEST_ABSENT}: the worker has no such variable")

	in.Set = []string{"judge=null"}
	objects := mem.New()
	_, err = judgedBench(t, objects).train(t, in)
	require.ErrorContains(t, err, "judge: is required, for the reward prs_long asks a judge")
	require.ErrorContains(t, err, "judge: is required, for evaluation.judged asks a judge")
	require.Empty(t, keys(t, objects))
}
