package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/workflows/queues"
)

// spread runs the shards of a rollout on several task queues, as an assignment decides. Each queue is asked what its
// worker has room for. A queue without a worker answers when one comes, so that it joins whenever that is.
type spread struct {
	step     *trainStep
	first    int // number of the first shard
	began    time.Time
	assigned *queues.Assignment
	shards   []spreadShard
	refused  []error // by queue: its worker cannot run the shards
}

// spreadShard is a shard that runs, or waits to be assigned.
type spreadShard struct {
	next    *queues.Order // to be begun
	attempt int           // that runs; 0 = none, or it was given up
	giveUp  workflow.CancelFunc
}

// spreads begins to spread a rollout's shards over the queues of its recipe; nil if it names none. The returned
// function ends it.
func (s *trainStep) spreads(ctx workflow.Context, first int) (*spread, func(), error) {
	names := s.plan.Queues
	if len(names) == 0 {
		return nil, func() {}, nil
	}
	assigned, err := queues.New(names, s.plan.Shards, s.plan.ShardTokens)
	if err != nil {
		return nil, nil, err
	}
	p := &spread{step: s, first: first, began: workflow.Now(ctx), assigned: assigned,
		shards: make([]spreadShard, s.plan.Shards), refused: make([]error, len(names))}
	ctx, end := workflow.WithCancel(ctx)
	for i := range names {
		workflow.Go(ctx, func(ctx workflow.Context) { p.ask(ctx, i) })
	}
	workflow.Go(ctx, p.begin)
	workflow.Go(ctx, p.observe)
	p.show(ctx)
	return p, end, nil
}

// begin begins to assign shards once a queue has a worker, and has given the others a moment to answer: the first would
// take all of a small rollout.
func (p *spread) begin(ctx workflow.Context) {
	if workflow.Await(ctx, func() bool { return p.assigned.Up() > 0 }) != nil {
		return
	}
	if !p.answered() {
		if _, err := workflow.AwaitWithTimeout(ctx, queues.AnswerWithin, p.answered); err != nil {
			return
		}
	}
	p.follow(ctx)(p.assigned.Begin(p.now(ctx)))
}

// answered reports whether all queues have answered.
func (p *spread) answered() bool {
	n := p.assigned.Up()
	for _, err := range p.refused {
		if err != nil {
			n++
		}
	}
	return n == len(p.refused)
}

// ask asks a queue what its worker has room for, and again whenever the queue has been lost.
func (p *spread) ask(ctx workflow.Context, queue int) {
	name := p.assigned.Queue(queue)
	for {
		o := options(ctx, api.ReportRoom, "what a worker of "+name+" has room for")
		o.TaskQueue = name
		var room api.Room
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), api.ReportRoom,
			api.RoomInput{Scope: p.step.scope}).Get(ctx, &room)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			workflow.GetLogger(ctx).Warn("a queue takes no shards", "queue", name, "error", err)
			p.refused[queue] = err
			return
		}
		p.follow(ctx)(p.assigned.Joins(p.now(ctx), queue, queues.Room{
			Worker: room.Host + ", " + room.Engine, Shards: room.Shards, Tokens: room.Tokens}))
		if workflow.Await(ctx, func() bool { return !p.assigned.IsUp(queue) }) != nil {
			return
		}
		workflow.GetLogger(ctx).Warn("a queue is lost", "queue", name)
	}
}

// observe has the running shards observed from time to time, as long as there are queues to compare.
func (p *spread) observe(ctx workflow.Context) {
	for {
		if workflow.Sleep(ctx, queues.ObserveAfter(workflow.Now(ctx).Sub(p.began))) != nil {
			return
		}
		if p.assigned.Up() < 2 {
			continue
		}
		seen, err := call[api.Observed](ctx, api.ObserveShards, "how fast the shards on each queue go on",
			api.ObserveInput{Scope: p.step.scope})
		if ctx.Err() != nil {
			return
		}
		if err != nil { // the shards go on as they were assigned
			workflow.GetLogger(ctx).Warn("shards could not be observed", "error", err)
			continue
		}
		p.follow(ctx)(p.assigned.Observe(p.now(ctx), p.perToken(seen)))
	}
}

// perToken is what was seen of each queue, in the assignment's order.
func (p *spread) perToken(seen api.Observed) []float64 {
	out := make([]float64, len(p.refused))
	for i := range out {
		for _, o := range seen.Queues {
			if o.Queue == p.assigned.Queue(i) {
				out[i] = o.PerToken
			}
		}
	}
	return out
}

// run runs a shard wherever it is assigned, until it is done or has failed for good.
func (p *spread) run(ctx workflow.Context, r *shardRollout, in api.EpisodesInput) (api.Episodes, error) {
	i := r.shard - p.first
	p.follow(ctx)(p.assigned.Submit(p.now(ctx), i))
	for {
		shard := &p.shards[i]
		if err := workflow.Await(ctx, func() bool { return shard.next != nil || p.hopeless() }); err != nil {
			return api.Episodes{}, err
		}
		if shard.next == nil {
			return api.Episodes{}, errors.Join(p.refused...)
		}
		at := *shard.next
		shard.next = nil
		out, err := p.attempt(ctx, shard, at, in)
		switch {
		case err == nil:
			p.follow(ctx)(p.assigned.Ended(p.now(ctx), i, at.Attempt, out.Tokens))
			return out, nil
		case ctx.Err() != nil:
			return out, err
		case shard.attempt != at.Attempt: // given up, and perhaps assigned again
			continue
		case vanished(err):
			p.follow(ctx)(p.assigned.Vanished(p.now(ctx), i))
			continue
		}
		decided, again, told := p.assigned.Failed(p.now(ctx), i)
		if p.follow(ctx)(decided, told); again {
			continue
		}
		p.follow(ctx)(p.assigned.Withdraw(p.now(ctx), i))
		return out, err
	}
}

// attempt runs a shard on the queue that it is assigned to.
func (p *spread) attempt(ctx workflow.Context, shard *spreadShard, at queues.Order, in api.EpisodesInput) (
	out api.Episodes, err error) {
	name := p.assigned.Queue(at.Queue)
	words := fmt.Sprintf("shard %d on %s", in.Shard, name)
	if at.Attempt > 1 {
		words += fmt.Sprintf(", attempt %d", at.Attempt)
	}
	o := options(ctx, api.RunEpisodes, words)
	o.TaskQueue, o.ScheduleToStartTimeout, o.RetryPolicy = name, queues.TakeWithin, retryOnQueue
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	shard.attempt, shard.giveUp = at.Attempt, cancel
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), api.RunEpisodes, in).Get(ctx, &out)
	return out, err
}

// retryOnQueue is retryTransient, but a silent worker is noticed by the workflow, which chooses another queue.
var retryOnQueue = &temporal.RetryPolicy{
	InitialInterval:    retryTransient.InitialInterval,
	BackoffCoefficient: retryTransient.BackoffCoefficient,
	MaximumInterval:    retryTransient.MaximumInterval,
	MaximumAttempts:    retryTransient.MaximumAttempts,
	NonRetryableErrorTypes: slices.Concat(retryTransient.NonRetryableErrorTypes,
		[]string{"TemporalTimeout:Heartbeat"}),
}

// vanished reports whether a queue's worker is gone: it has not taken a shard, or it is silent.
func vanished(err error) bool {
	var timeout *temporal.TimeoutError
	return errors.As(err, &timeout) &&
		slices.Contains([]string{"ScheduleToStart", "Heartbeat"}, timeout.TimeoutType().String())
}

// hopeless reports whether the workers of all queues refuse the shards.
func (p *spread) hopeless() bool {
	return !slices.ContainsFunc(p.refused, func(err error) bool { return err == nil })
}

// follow returns a function that carries out orders. An assignment that contradicts itself is an error in this
// program: the workflow task fails then, and is tried again until a build without the error runs.
func (p *spread) follow(ctx workflow.Context) func([]queues.Order, error) {
	return func(decided []queues.Order, err error) {
		if err != nil {
			panic(fmt.Errorf("assign shards to queues: %w", err))
		}
		for _, d := range decided {
			shard := &p.shards[d.Shard]
			if d.GiveUp {
				if shard.attempt = 0; shard.next != nil { // it was not begun
					shard.next = nil
				} else {
					shard.giveUp()
				}
				continue
			}
			shard.next = &d
		}
		p.show(ctx)
	}
}

// now is the number of seconds since the rollout began.
func (p *spread) now(ctx workflow.Context) float64 { return workflow.Now(ctx).Sub(p.began).Seconds() }

// show shows which queue runs which shard.
func (p *spread) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**%s** · step %d · %s\n\n%s", p.step.run, p.step.step, p.step.stage,
		p.assigned.Markdown(p.first)))
}
