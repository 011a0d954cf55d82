package activities

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// paced is a policy on a device of its own: each batch of responses takes 500 ms and none of this machine's processors.
// Its trajectories have one to eight turns. Each answer is another one.
type paced struct {
	fakeEngine
	tok *tokenizer.Tokenizer

	mu        sync.Mutex
	left      int           // trajectories that have not answered
	generated chan struct{} // closed with the last answer
	last      time.Time     // when that was
}

const (
	pacedTurns        = 8
	pacedResponse     = 500 * time.Millisecond
	pacedSamples      = 32
	pacedGroups       = 2
	pacedTrajectories = pacedSamples * pacedGroups
)

func (e *paced) Capabilities() policy.Capabilities {
	can := e.fakeEngine.Capabilities()
	can.BatchInvariant = true
	return can
}

func (e *paced) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	time.Sleep(pacedResponse)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, prefix := range req.Prefixes {
		text := e.tok.Decode(prefix)
		turn := strings.Count(text, protocol.EndOfTurn+"\n<|im_start|>assistant\n") - 1
		response := "</reason>" + protocol.Call("print(1)", "") + protocol.EndOfTurn
		if req.Streams[i]>>9%uint64(pacedTurns-turn) == 0 { // as many have one turn as two, and so on
			response = protocol.AnswerResponse(fmt.Sprintf("%d+x", 2+e.left))
			if e.left--; e.left == 0 {
				e.last = time.Now()
				close(e.generated)
			}
		}
		ids := e.tok.Encode(response)
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// afterwards is a sandbox that compares no answers until all of them are generated.
type afterwards struct {
	sandbox.Executor
	generated <-chan struct{}
}

func (a afterwards) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if len(calls) > 0 && calls[0].Packages == sandbox.PackagesSympy {
		select {
		case <-a.generated:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return a.Executor.Run(ctx, calls)
}

func (a afterwards) Workers() int { return 2 }

// BenchmarkGradingAlongside takes a shard of 64 trajectories to its rewards by turns in two ways: their answers are
// graded when their episodes end, or all of them after the last response. It reports the seconds of both, those of them
// after the last response, and the ratios of later to alongside.
func BenchmarkGradingAlongside(b *testing.B) {
	executor := zygotetest.WithSympy(b, sandbox.TierLandlock)
	questions := sums(b)
	var total, tail [2]float64
	for range b.N {
		for way := range total {
			engine := &paced{tok: mathTokens(b), left: pacedTrajectories, generated: make(chan struct{})}
			var box sandbox.Executor = executor
			if way == 1 {
				box = afterwards{executor, engine.generated}
			}
			step := mathStep(b, engine, box, questions, fmt.Sprintf("rollout.samples_per_prompt=%d", pacedSamples),
				fmt.Sprintf("rollout.shard_groups=%d", pacedGroups))
			began := time.Now()
			out, err := do(step, episodes.RunEpisodes{Worker: step.deps}.Execute, api.EpisodesInput{Scope: step.scope,
				Prompts: step.prompts, Policy: step.policy, MaxTurns: pacedTurns, Needs: stages.Needs{Grade: true}})
			total[way] += time.Since(began).Seconds()
			tail[way] += time.Since(engine.last).Seconds()
			require.NoError(b, err)
			require.Equal(b, pacedTrajectories, out.Scored.Trajectories)
		}
	}
	n := float64(b.N)
	b.ReportMetric(total[0]/n, "s-alongside")
	b.ReportMetric(total[1]/n, "s-afterwards")
	b.ReportMetric(tail[0]/n, "s-tail-alongside")
	b.ReportMetric(tail[1]/n, "s-tail-afterwards")
	b.ReportMetric(total[1]/total[0], "ratio")
	b.ReportMetric(tail[1]/tail[0], "ratio-tail")
	b.ReportMetric(0, "ns/op")
}
