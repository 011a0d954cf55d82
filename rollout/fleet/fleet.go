package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// Engine is a sampler and what its cache holds. The caller has loaded the policy, and closes the sampler.
type Engine struct {
	policy.Sampler
	scheduler.Engine
}

// Turn is what an episode asks an engine for.
type Turn struct {
	Prefix    []int32
	Stream    uint64
	MaxTokens int
}

// Response is what an engine has generated for a turn.
type Response struct {
	Tokens              []int32
	LogProbs, Entropies []float32 // Entropies are nil if the sampler has none
	Finish              policy.Finish
}

// Episode is one trajectory. Its methods are called one at a time, from different goroutines.
type Episode interface {
	// Next returns the next turn. It may be called again, with the same result, if an attempt was given up.
	Next() Turn
	// Absorb takes the turn's response. It reports whether tool calls, and another turn, follow.
	Absorb(r Response) (more bool, err error)
	// Call runs the tool calls of the turn that was absorbed. It obeys its context.
	Call(ctx context.Context) error
}

// Work is an episode and what the scheduler is told about it. Spec.Prompt and Spec.Most bound the lengths of its
// prefixes: the prefix of Next and its MaxTokens together are at most Most.
type Work struct {
	Episode
	Spec scheduler.Spec
}

// Options of a run. Request holds what all turns share: role, temperature, truncation, stop tokens.
type Options struct {
	Settings  scheduler.Settings
	Request   policy.GenerateRequest
	Heartbeat time.Duration // how often engines that have not answered are looked at; 0 = a second
}

// Report says what a run has done.
type Report struct {
	Seconds float64
	Stats   scheduler.Stats
	Turns   []int // absorbed, of each engine
	Lost    []int // engines
}

// Run generates the episodes to their ends. It returns when every episode has ended or was stopped (Settings.Need), at
// the first error of an episode, when no engine is left, or when ctx ends.
func Run(ctx context.Context, o Options, engines []Engine, work []Work) (Report, error) {
	f, err := open(ctx, o, engines, work)
	if err != nil {
		return Report{}, fmt.Errorf("fleet: %w", err)
	}
	defer f.close()
	err = f.run()
	f.report.Seconds, f.report.Stats = f.now(), f.core.Stats()
	if err != nil {
		return f.report, fmt.Errorf("fleet: %w", err)
	}
	return f.report, nil
}

// fleet is one run. Only its own goroutine touches it.
type fleet struct {
	ctx      context.Context
	cancel   context.CancelFunc
	options  Options
	core     *scheduler.Core
	work     []Work
	workers  []*worker
	attempts []int // of each episode's turn that runs; 0 = none
	messages chan message
	events   []scheduler.Event
	begun    time.Time
	running  int // goroutines that will send a message
	report   Report
}

// message is what a goroutine has to say: a batch has ended, or tools have answered.
type message struct {
	batch   *batch
	episode int
	attempt int
	err     error
}

func open(ctx context.Context, o Options, engines []Engine, work []Work) (*fleet, error) {
	if o.Heartbeat == 0 {
		o.Heartbeat = time.Second
	}
	var known []scheduler.Engine
	for _, e := range engines {
		known = append(known, e.Engine)
	}
	core, err := scheduler.New(o.Settings, known)
	if err != nil {
		return nil, err
	}
	f := &fleet{options: o, core: core, work: work, attempts: make([]int, len(work)),
		messages: make(chan message, len(work)+len(engines)), begun: time.Now()}
	f.report.Turns = make([]int, len(engines))
	f.ctx, f.cancel = context.WithCancel(ctx)
	for i, e := range engines {
		f.workers = append(f.workers, &worker{id: i, sampler: e.Sampler})
	}
	for i, w := range work {
		f.tell(scheduler.Event{Kind: scheduler.Submit, Episode: i, Spec: w.Spec})
	}
	return f, nil
}

// close ends every goroutine of the run and waits for them.
func (f *fleet) close() {
	f.cancel()
	for f.running > 0 {
		<-f.messages
		f.running--
	}
}

func (f *fleet) now() float64 { return time.Since(f.begun).Seconds() }

func (f *fleet) tell(e scheduler.Event) { f.events = append(f.events, e) }

func (f *fleet) run() error {
	beat := time.NewTicker(f.options.Heartbeat)
	defer beat.Stop()
	for {
		if err := f.decide(); err != nil {
			return err
		}
		if s := f.core.Stats(); s.Ended+s.Stopped == len(f.work) {
			return nil
		}
		if f.running == 0 {
			if len(f.report.Lost) == len(f.workers) {
				return fmt.Errorf("%w: no engine is left, and %d episodes have not ended", policy.ErrLost,
					len(f.work)-f.core.Stats().Ended-f.core.Stats().Stopped)
			}
			if _, ok := f.core.Wake(); !ok {
				return errors.New("the remaining episodes fit none of the engines that are left")
			}
		}
		if err := f.wait(beat.C); err != nil {
			return err
		}
	}
}

// wait waits until something happens, and collects all that has.
func (f *fleet) wait(beat <-chan time.Time) error {
	wake := time.NewTimer(f.untilWake())
	defer wake.Stop()
	select {
	case <-f.ctx.Done():
		return f.ctx.Err()
	case <-wake.C:
	case <-beat:
		f.look()
	case m := <-f.messages:
		if err := f.hear(m); err != nil {
			return err
		}
	}
	for {
		select {
		case m := <-f.messages:
			if err := f.hear(m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (f *fleet) untilWake() time.Duration {
	at, ok := f.core.Wake()
	if !ok {
		return math.MaxInt64
	}
	return time.Duration(max(at-f.now(), 0) * float64(time.Second))
}

// decide asks the scheduler and carries out what it decides.
func (f *fleet) decide() error {
	actions, err := f.core.Step(f.now(), f.events...)
	f.events = f.events[:0]
	if err != nil {
		return err
	}
	for _, a := range actions {
		switch a.Do {
		case scheduler.Start:
			f.attempts[a.Episode] = a.Attempt
			w := f.workers[a.Engine]
			w.queue = append(w.queue, row{episode: a.Episode, attempt: a.Attempt, turn: f.work[a.Episode].Next()})
		case scheduler.Cancel, scheduler.Stop:
			f.attempts[a.Episode] = 0
		case scheduler.Load:
			return errors.New("the scheduler asks for other weights, which were not published")
		}
	}
	for _, w := range f.workers {
		f.trim(w)
		f.launch(w)
	}
	return nil
}

// current reports whether a row's attempt still counts.
func (f *fleet) current(r row) bool { return f.attempts[r.episode] == r.attempt }
