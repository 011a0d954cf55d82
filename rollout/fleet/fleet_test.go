package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

const vocab = 16

// shape is a model that takes microseconds a token, so that the tests' engines are as slow as they pretend to be. Its
// sizes are whole vectors, because the race detector refuses the partial ones of package simd/archsimd.
var shape = checkpoint.Shape{
	Vocab: vocab, Hidden: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 32, Positions: 512, RopeTheta: 1e4,
	NormEps: 1e-6, Pad: -1,
}

// engine is a CPU engine that takes a given time for a step, from a moment on ten times as long, and from another on is
// gone.
type engine struct {
	policy.Sampler
	step           time.Duration
	begun          time.Time
	slowAt, lostAt time.Duration // since begun; 0 = never
	calls          atomic.Int64
}

// Generate generates, and waits as long as the engine pretends to need.
func (e *engine) Generate(ctx context.Context, r policy.GenerateRequest) (policy.Generated, error) {
	e.calls.Add(1)
	out, err := e.Sampler.Generate(ctx, r)
	if err != nil {
		return out, err
	}
	steps := 0
	for _, t := range out.Tokens {
		steps = max(steps, len(t))
	}
	for range steps {
		if e.lostAt > 0 && time.Since(e.begun) > e.lostAt {
			return policy.Generated{}, fmt.Errorf("%w: it was killed", policy.ErrLost)
		}
		wait := e.step
		if e.slowAt > 0 && time.Since(e.begun) > e.slowAt {
			wait *= 10
		}
		select {
		case <-ctx.Done():
			return policy.Generated{}, ctx.Err()
		case <-time.After(wait):
		}
	}
	return out, nil
}

// open makes CPU engines with the same policy.
func openEngines(t *testing.T, n int) []*engine {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, checkpoint.Init(dir, shape, 5, map[string][]byte{"tokenizer.json": []byte("{}")}))
	var out []*engine
	for range n {
		e, err := cpu.Open(cpu.Options{Threads: 1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, false))
		out = append(out, &engine{Sampler: e, step: 500 * time.Microsecond, begun: time.Now()})
	}
	return out
}

func asFleet(engines ...*engine) (out []Engine) {
	for _, e := range engines {
		e.begun = time.Now()
		out = append(out, Engine{Sampler: e, Engine: scheduler.Engine{Capacity: 4096, Rows: 8, Prefill: 1e5}})
	}
	return out
}

// episode has turns of given lengths, between which a tool answers with one token.
type episode struct {
	id      int
	lengths []int
	tokens  []int32 // all, with the prompt
	turns   int     // absorbed
	calls   int
	broken  bool // its tool fails
}

func (e *episode) Next() Turn {
	return Turn{Prefix: e.tokens, Stream: uint64(e.id)<<8 | uint64(e.turns), MaxTokens: e.lengths[e.turns]}
}

func (e *episode) Absorb(r Response) (bool, error) {
	if len(r.Tokens) != e.lengths[e.turns] || len(r.LogProbs) != len(r.Tokens) {
		return false, fmt.Errorf("%d tokens in turn %d", len(r.Tokens), e.turns)
	}
	e.tokens = append(append([]int32{}, e.tokens...), r.Tokens...)
	e.turns++
	return e.turns < len(e.lengths), nil
}

func (e *episode) Call(ctx context.Context) error {
	e.calls++
	if e.broken {
		return errors.New("the tool is broken")
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(e.id%5) * 4 * time.Millisecond):
	}
	e.tokens = append(append([]int32{}, e.tokens...), int32(e.id%vocab))
	return nil
}

// episodes are n episodes with a few long ones.
func episodes(n int) []*episode {
	rng := rand.New(rand.NewPCG(3, 4))
	var out []*episode
	for i := range n {
		e := &episode{id: i, tokens: []int32{1, int32(i % vocab), 2}}
		for range 1 + rng.IntN(4) {
			length := 8 + rng.IntN(24)
			if rng.IntN(8) == 0 {
				length += 40
			}
			e.lengths = append(e.lengths, length)
		}
		out = append(out, e)
	}
	return out
}

func asWork(all []*episode) (out []Work) {
	for _, e := range all {
		out = append(out, Work{Episode: e, Spec: scheduler.Spec{Group: e.id / 8, Prompt: len(e.tokens), Most: 400}})
	}
	return out
}

func options() Options {
	s := scheduler.Default()
	s.Length = 80
	return Options{Settings: s, Request: policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1},
		Heartbeat: 50 * time.Millisecond}
}

// finished requires that every episode has absorbed every turn and run every call once.
func finished(t *testing.T, all []*episode) {
	t.Helper()
	for _, e := range all {
		require.Equal(t, len(e.lengths), e.turns, "episode %d", e.id)
		require.Equal(t, len(e.lengths)-1, e.calls, "episode %d", e.id)
	}
}

// Three engines, of which one is killed and another becomes ten times slower in mid-rollout: nothing is lost, every
// episode has the tokens that a single undisturbed engine generates, and the log says how long a static split takes
// under the same disturbances.
func TestOneKilledOneSlowed(t *testing.T) {
	const n = 96
	want := episodes(n)
	alone := openEngines(t, 1)
	alone[0].step = 0
	_, err := Run(t.Context(), options(), asFleet(alone[0]), asWork(want))
	require.NoError(t, err)
	finished(t, want)

	engines := openEngines(t, 3)
	disturb := func() {
		for _, e := range engines {
			e.begun = time.Now()
		}
		engines[1].lostAt, engines[2].slowAt = 100*time.Millisecond, 60*time.Millisecond
	}
	got := episodes(n)
	fleet := asFleet(engines...)
	disturb()
	report, err := Run(t.Context(), options(), fleet, asWork(got))
	require.NoError(t, err)
	finished(t, got)
	for i := range got {
		require.Equal(t, want[i].tokens, got[i].tokens, "episode %d", i)
	}
	require.Equal(t, []int{1}, report.Lost)
	require.Equal(t, n, report.Stats.Ended)
	require.Positive(t, report.Stats.Repeated, "turns of the lost engine begin again")
	require.Greater(t, report.Turns[0], report.Turns[2], "the slow engine gets less")

	static := episodes(n)
	disturb()
	seconds := split(t, engines, static)
	finished(t, static)
	t.Logf("scheduler %.2f s, static split %.2f s: %.2f times as long; turns of each engine %v; %+v", report.Seconds,
		seconds, seconds/report.Seconds, report.Turns, report.Stats)
}

// split gives each engine its third, and the rest of the killed engine's third to the others as soon as it is gone.
func split(t *testing.T, engines []*engine, all []*episode) float64 {
	begun := time.Now()
	var wg sync.WaitGroup
	run := func(e *engine, share []*episode) error {
		_, err := Run(t.Context(), options(), []Engine{{Sampler: e,
			Engine: scheduler.Engine{Capacity: 4096, Rows: 8, Prefill: 1e5}}}, asWork(share))
		return err
	}
	third := len(all) / 3
	for i, e := range engines {
		share := all[i*third : (i+1)*third]
		wg.Go(func() {
			err := run(e, share)
			if i != 1 {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, policy.ErrLost)
			var rest []*episode
			for _, e := range share {
				if e.turns < len(e.lengths) {
					e.calls = e.turns - max(e.turns-e.calls, 0) // as many as were made
					rest = append(rest, e)
				}
			}
			var both sync.WaitGroup
			both.Go(func() { require.NoError(t, run(engines[0], rest[:len(rest)/2])) })
			both.Go(func() { require.NoError(t, run(engines[2], rest[len(rest)/2:])) })
			both.Wait()
		})
	}
	wg.Wait()
	return time.Since(begun).Seconds()
}

// Without an engine that is left, the error says so, and what was absorbed is kept.
func TestAllEnginesLost(t *testing.T) {
	engines := openEngines(t, 2)
	fleet := asFleet(engines...)
	for _, e := range engines {
		e.lostAt = 30 * time.Millisecond
	}
	all := episodes(40)
	report, err := Run(t.Context(), options(), fleet, asWork(all))
	require.ErrorIs(t, err, policy.ErrLost)
	require.ErrorContains(t, err, "no engine is left")
	require.ElementsMatch(t, []int{0, 1}, report.Lost)
}

// faulty fails on requests that hold a certain row.
type faulty struct{ policy.Sampler }

func (f faulty) Generate(ctx context.Context, r policy.GenerateRequest) (policy.Generated, error) {
	for _, s := range r.Streams {
		if s>>8 == 5 {
			return policy.Generated{}, errors.New("this row cannot be generated")
		}
	}
	return f.Sampler.Generate(ctx, r)
}

func TestErrorsNameTheEpisode(t *testing.T) {
	e := openEngines(t, 1)[0]
	e.step = 0
	fleet := asFleet(e)
	fleet[0].Sampler = faulty{e}
	_, err := Run(t.Context(), options(), fleet, asWork(episodes(12)))
	require.ErrorContains(t, err, "episode 5: this row cannot be generated")

	all := episodes(12)
	for _, e := range all {
		e.broken = e.id == 7
		if e.broken {
			e.lengths = []int{3, 3}
		}
	}
	_, err = Run(t.Context(), options(), asFleet(e), asWork(all))
	require.ErrorContains(t, err, "tool calls of episode 7: the tool is broken")
}

// Over-sampling stops the episodes that are not needed, and a run that is cancelled ends at once.
func TestStopAndCancel(t *testing.T) {
	engines := openEngines(t, 2)
	o := options()
	o.Settings.Need = 5
	all := episodes(40)
	report, err := Run(t.Context(), o, asFleet(engines...), asWork(all))
	require.NoError(t, err)
	require.GreaterOrEqual(t, report.Stats.Ended, 25)
	require.Equal(t, 40, report.Stats.Ended+report.Stats.Stopped)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = Run(ctx, options(), asFleet(engines...), asWork(episodes(40)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
