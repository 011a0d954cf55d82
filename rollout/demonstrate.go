package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
)

// NewTokenizer makes the tokenizer of calc's policies: the protocol's fixed strings, then those of
// the problems and their code.
func NewTokenizer() (*tokenizer.Tokenizer, error) {
	return tokenizer.New(append(protocol.Added(), calc.Added()...))
}

// Demonstration is one episode that the scripted teacher wrote.
type Demonstration struct {
	Tokens []int32
	Mask   []int32 // 1 where the policy is meant to write
	Right  bool    // its last answer is the gold answer
	// Episode holds the turns; responses have no log-probabilities.
	Episode *Episode
}

// demonstrationWorkers run at once; each demonstration has its own stream, so that their number
// changes nothing.
const demonstrationWorkers = 8

// samplesPerGroup spreads the index of a demonstration over group and sample, whose ids are bounded.
const samplesPerGroup = 1000

// Demonstrations writes demonstrations from…from+n−1 of the run's warm start: problems with the
// given shares of levels, none of them held out. The tool's responses are real: executor runs
// each call. progress, if not nil, is told how many are done.
func (l *Loop) Demonstrations(ctx context.Context, executor sandbox.Executor, shares calc.Shares, noise calc.Noise,
	from, n int, progress func(done, total int)) ([]Demonstration, error) {
	if err := noise.Validate(); err != nil {
		return nil, err
	}
	if err := shares.Validate(); err != nil {
		return nil, err
	}
	out := make([]Demonstration, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(demonstrationWorkers)
	report := reporter(n, progress)
	for i := range out {
		group.Go(func() error {
			rng := seed.Rand("demonstration", l.runSeed, uint64(from+i))
			d, err := l.demonstrate(ctx, executor, rng, calc.Sample(rng, shares), noise, from+i)
			if err != nil {
				return err
			}
			out[i] = d
			report(1)
			return nil
		})
	}
	return out, group.Wait()
}

// demonstrate lets the teacher act through the very loop that policies act through.
func (l *Loop) demonstrate(ctx context.Context, executor sandbox.Executor, rng *rand.Rand, p env.Problem,
	noise calc.Noise, index int) (Demonstration, error) {
	id := Identity{Label: "demonstration", Group: index / samplesPerGroup, Sample: index % samplesPerGroup}
	e := l.Start(id, p)
	e.History = 0 // it is cloned as a whole
	act := func(s calc.Step) (calc.Shown, error) { return l.act(ctx, executor, e, s) }
	steps, err := calc.Demonstrate(rng, p, noise, act)
	if err != nil {
		return Demonstration{}, err
	}
	if e.AwaitsResponse() {
		l.absorb(e, l.scripted(protocol.AnswerResponse(steps[len(steps)-1].Answer)))
	}
	d := Demonstration{Episode: e}
	d.Tokens, d.Mask = e.Sequence()
	answer, _ := e.Answer()
	d.Right = answer == p.Answer
	return d, nil
}

// scripted is a turn whose response is given as text.
func (l *Loop) scripted(text string) Turn {
	return Turn{Response: l.tok.Encode(text), Finish: policy.FinishStop}
}

// act appends one call of the teacher's, runs it and says what the tool showed.
func (l *Loop) act(ctx context.Context, executor sandbox.Executor, e *Episode, s calc.Step) (calc.Shown, error) {
	if !e.AwaitsResponse() {
		return calc.Shown{}, nil // the episode's budget ended before the teacher did
	}
	response := protocol.CallResponse(s.Code)
	if s.Broken {
		response = protocol.BrokenResponse(s.Code)
	}
	l.absorb(e, l.scripted(response))
	one := []*Episode{e}
	var results []sandbox.Result
	if calls, _ := l.PendingCalls(one); len(calls) > 0 {
		var err error
		if results, err = executor.Run(ctx, calls); err != nil {
			return calc.Shown{}, fmt.Errorf("run the teacher's call: %w", err)
		}
	}
	if err := l.AbsorbResults(one, results); err != nil {
		return calc.Shown{}, err
	}
	return shown(e.Turns[len(e.Turns)-1]), nil
}

// shown reads the one verdict of a turn.
func shown(t Turn) calc.Shown {
	if len(t.Results) == 0 {
		return calc.Shown{}
	}
	r := t.Results[0]
	text := strings.TrimSpace(r.Stdout)
	if text == "" {
		text = r.Value
	}
	return calc.Shown{OK: !r.Failed(), Text: text}
}
