package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/testing/launch"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/scheduler"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// fleetSize is the number of servers.
const fleetSize = 3

// episode is the work of one episode, whichever server does it.
type episode struct {
	stream uint64
	prompt []int32
	turns  []turn
}

// turn is a response of so many tokens, and the tool's answer after it.
type turn struct {
	tokens int
	result []int32
	wait   time.Duration // of the tool
}

// workload makes episodes. Most turns are short, and one in ten is long.
func workload(n, vocab int) []episode {
	rng := rand.New(rand.NewPCG(19, 3))
	ids := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(rng.IntN(vocab))
		}
		return out
	}
	out := make([]episode, n)
	for i := range out {
		out[i] = episode{stream: rng.Uint64(), prompt: ids(20 + rng.IntN(40))}
		for range 1 + rng.IntN(3) {
			t := turn{tokens: 10 + rng.IntN(40), result: ids(5 + rng.IntN(20)),
				wait: time.Duration(rng.IntN(50)) * time.Millisecond}
			if rng.IntN(10) == 0 {
				t.tokens = 150 + rng.IntN(100)
			}
			out[i].turns = append(out[i].turns, t)
		}
	}
	return out
}

// outcome is what a rollout has brought.
type outcome struct {
	Seconds float64         // makespan
	Stats   scheduler.Stats // of the scheduler
	Digest  string          // of all tokens and log-probabilities
	Seeds   bool            // the servers' tokens follow from the rows' seeds
	Turns   int             // responses that were taken
}

// answer is a finished turn.
type answer struct {
	Tokens   []int32
	LogProbs []float32
}

// rolling is one rollout.
type rolling struct {
	work    []episode
	answers [][]answer // of each episode, by turns
	faults  func()     // called when a quarter of the turns is done
	mu      sync.Mutex
	done    int // turns
	all     int
}

// rollOut starts servers, generates the episodes, and ends the servers.
func rollOut(ctx context.Context, p program, m model, work []episode, static, fault bool) (out outcome, err error) {
	ctx, end := context.WithCancel(ctx)
	var slowing sync.WaitGroup
	defer slowing.Wait()
	defer end()
	var fleet []*launch.Server
	defer func() {
		for _, s := range fleet {
			s.Kill()
		}
	}()
	for range fleetSize {
		s, err := p.start(ctx, m)
		if err != nil {
			return out, err
		}
		fleet = append(fleet, s)
	}
	r := &rolling{work: work, answers: make([][]answer, len(work))}
	for _, e := range work {
		r.all += len(e.turns)
	}
	if fault {
		r.faults = func() {
			fleet[0].Kill()
			slowing.Go(func() { slow(ctx, fleet[1]) })
		}
	}
	groups := [][]*launch.Server{fleet}
	if static {
		groups = [][]*launch.Server{fleet[:1], fleet[1:2], fleet[2:]}
	}
	var samplers []*servers.Sampler
	for _, group := range groups {
		s, err := connect(ctx, p.kind, group, m.folder)
		if err != nil {
			return out, err
		}
		defer s.Close()
		samplers = append(samplers, s)
	}
	began := time.Now()
	if err := r.split(ctx, samplers); err != nil {
		return out, err
	}
	out = outcome{Seconds: time.Since(began).Seconds(), Stats: samplers[0].Stats(), Turns: r.done,
		Seeds: samplers[0].Capabilities().RowSeeds}
	text, err := json.Marshal(r.answers)
	sum := sha256.Sum256(text)
	out.Digest = hex.EncodeToString(sum[:])
	return out, err
}

// connect opens a sampler of servers with the policy.
func connect(ctx context.Context, kind string, group []*launch.Server, folder string) (*servers.Sampler, error) {
	var list []servers.Server
	for _, s := range group {
		list = append(list, servers.Server{Kind: kind, URL: s.URL, Parallel: atOnce, Attempts: 3, StreamFrom: 32})
	}
	s, err := servers.Open(ctx, servers.Options{Servers: list,
		Score: servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(cpu.Options{Threads: 1}) })})
	if err != nil {
		return nil, err
	}
	if err := s.Load(ctx, policy.RolePolicy, folder, false); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// split gives each sampler an equal part of the episodes. What one has not finished when it is lost goes to the others,
// in equal parts.
func (r *rolling) split(ctx context.Context, samplers []*servers.Sampler) error {
	left, running := samplers, 0
	errs := make(chan error, len(samplers)*len(samplers)) // more than the parts that can be begun
	var divide func(episodes []int)                       // the lock is held
	divide = func(episodes []int) {
		for i, s := range left {
			var part []int
			for k := i; k < len(episodes); k += len(left) {
				part = append(part, episodes[k])
			}
			running++
			go func() {
				open, err := r.generate(ctx, s, part)
				r.mu.Lock()
				defer r.mu.Unlock()
				if errors.Is(err, policy.ErrLost) && len(left) > 1 {
					err = nil
					left = slices.DeleteFunc(slices.Clone(left), func(x *servers.Sampler) bool { return x == s })
					divide(open)
				}
				running--
				if err != nil || running == 0 {
					errs <- err
				}
			}()
		}
	}
	all := make([]int, len(r.work))
	for k := range all {
		all[k] = k
	}
	r.mu.Lock()
	divide(all)
	r.mu.Unlock()
	return <-errs
}

// generate generates episodes with one sampler. It returns those that are not finished.
func (r *rolling) generate(ctx context.Context, s *servers.Sampler, part []int) (open []int, err error) {
	errs := make([]error, len(part))
	var all sync.WaitGroup
	for i, k := range part {
		all.Go(func() { errs[i] = r.one(ctx, s, k) })
	}
	all.Wait()
	for i, e := range errs {
		if e != nil {
			open, err = append(open, part[i]), e
		}
	}
	return open, err
}

// one generates the turns of an episode that are not finished.
func (r *rolling) one(ctx context.Context, s *servers.Sampler, k int) error {
	e := r.work[k]
	prefix := slices.Clone(e.prompt)
	for i, t := range e.turns {
		if i == len(r.answers[k]) {
			g, err := s.Generate(ctx, policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1,
				Prefixes: [][]int32{prefix}, Streams: []uint64{e.stream + uint64(i)}, MaxTokens: []int{t.tokens}})
			if err != nil {
				return fmt.Errorf("turn %d of episode %d: %w", i, k, err)
			}
			r.answers[k] = append(r.answers[k], answer{g.Tokens[0], g.LogProbs[0]})
			r.count()
			select {
			case <-time.After(t.wait):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		prefix = slices.Concat(prefix, r.answers[k][i].Tokens, t.result)
	}
	return nil
}

// count counts a finished turn.
func (r *rolling) count() {
	r.mu.Lock()
	r.done++
	now := r.faults != nil && r.done == max(1, r.all/4)
	r.mu.Unlock()
	if now {
		r.faults()
	}
}
