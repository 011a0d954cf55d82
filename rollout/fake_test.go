package rollout

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// settings have enough room for every usual trajectory.
var settings = Settings{MaxTurns: 3, MaxTurnTokens: 48, MaxTokens: 192, MaxToolTextBytes: 200, Temperature: 1}

func newLoop(t testing.TB, s Settings, runSeed uint64) *Loop {
	t.Helper()
	tok, err := NewTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLoop(s, tok, runSeed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// babbler is an engine whose responses depend only on each row's stream: calls of every kind, answers, several blocks,
// bytes that are not text, and responses that do not end.
type babbler struct {
	policy.Engine
	tok tokenizer.Codec
	// failAfter > 0 makes the engine fail at that call.
	failAfter, calls int
}

func (b *babbler) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	b.calls++
	if b.calls == b.failAfter {
		return policy.Generated{}, policy.ErrLost
	}
	var g policy.Generated
	for i, stream := range req.Streams {
		rng := newRand(stream)
		ids, finish := b.tok.Encode(babble(rng)), policy.FinishStop
		if len(ids) > req.MaxTokens[i] {
			ids, finish = ids[:req.MaxTokens[i]], policy.FinishLength
		}
		if ids[len(ids)-1] != req.Stop[0] {
			finish = policy.FinishLength
		}
		logProbs, entropies := make([]float32, len(ids)), make([]float32, len(ids))
		for t := range ids {
			logProbs[t], entropies[t] = -rng.Float32(), rng.Float32()
		}
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs, g.Entropies = append(g.LogProbs, logProbs), append(g.Entropies, entropies)
		g.Finish = append(g.Finish, finish)
		if req.Top > 0 {
			g.Top = append(g.Top, likely(rng, min(len(ids), req.TopTokens), req.Top))
		}
	}
	return g, nil
}

// likely returns log-probabilities of n tokens at each position.
func likely(rng *rand.Rand, positions, n int) [][]float32 {
	out := make([][]float32, positions)
	for i := range out {
		left := 1.0
		for range n {
			p := left * rng.Float64()
			left -= p
			out[i] = append(out[i], float32(math.Log(p)))
		}
	}
	return out
}

func babble(rng *rand.Rand) string {
	codes := []string{"print(12+3)", "x=2;x*=21;print(x)", "7*6", "x=1", "print(y)", "print(1//0)", "print('\xc3\xa9')"}
	code := func() string { return codes[rng.IntN(len(codes))] }
	end := protocol.EndOfTurn
	switch rng.IntN(9) {
	case 0:
		return protocol.AnswerResponse("15")
	case 1, 2, 3:
		return protocol.CallResponse(code())
	case 4:
		return "</reason>" + protocol.Call(code(), "") + protocol.BrokenCall(code()) + protocol.Call(code(), "") + end
	case 5:
		return protocol.BrokenResponse(code())
	case 6:
		return "</reason>\xff\xc3 nothing to do" + end
	case 7:
		return "<answer>1</answer>" + protocol.Call(code(), "") + end
	}
	return "</reason>on and on"
}

// python is a fake sandbox. It runs calc's language and fails every other program. Several callers may use it at once.
type python struct {
	failFrom int
	calls    atomic.Int64
}

var errBroken = errors.New("sandbox broken")

func (s *python) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	if call := s.calls.Add(1); s.failFrom > 0 && int(call) >= s.failFrom {
		return nil, errBroken
	}
	results := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		stdout, value, known := calc.Interpret(c.Code)
		results[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: stdout, Value: value}
		if !known {
			results[i] = sandbox.Result{
				Status: sandbox.StatusRuntime, ExitCode: 1,
				Stderr: "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    " + c.Code +
					"\nError: \xfe\n",
			}
		}
	}
	return results, nil
}

func (s *python) Close() error { return nil }

// serial checks that at most one caller is active, as the contract of Engine promises.
type serial struct {
	*babbler
	turn chan struct{}
}

func (s serial) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.babbler.Generate(ctx, req)
}

// demonstrated returns the demonstrations from…from+n−1 of a script.
func demonstrated(t *testing.T, l *Loop, box tool.Toolbox, s Script, from, n int) ([]Demonstration, error) {
	t.Helper()
	return Demonstrator{Loop: l, Box: box, Script: s}.Write(t.Context(), from, n, nil)
}

// box holds the tool python over a sandbox.
func box(e sandbox.Executor) tool.Toolbox {
	return tool.Toolbox{tools.NewPython(e, sandbox.Limits{})}
}

// callsOf runs calls in a sandbox, each by itself.
func callsOf(e sandbox.Executor) Tools { return NewTools(box(e), tool.Scope{}) }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }
