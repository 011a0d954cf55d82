package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// part supervises one process: start, wait until healthy, restart when it dies, give up after
// several quick deaths in a row.
type part struct {
	name  string // temporal, s3 or worker; also the log's name
	title string // for messages
	// command makes the command for one try; it may choose ports.
	command func() (*exec.Cmd, error)
	// probe asks the running process once whether it is healthy.
	probe func(ctx context.Context, p *process) error
	// onHealthy is told each time that the part became healthy.
	onHealthy func()
	// killOrphans ends what the process leaves behind outside its process group.
	killOrphans bool

	layout layout
	tuning tuning
	spawn  *spawner
	say    func(line string) // tells every lease
	log    *slog.Logger
	gaveUp func(p *part, err error)

	cancel context.CancelFunc
	ended  chan struct{} // closed when run has returned and no process is left

	mu      sync.Mutex
	change  chan struct{} // closed and replaced at each change of what follows
	healthy bool
	pid     int
	failed  error
}

// begin starts supervision in the background.
func (p *part) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.ended, p.change = cancel, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.ended)
		if err := p.run(ctx); err != nil {
			p.set(func() { p.failed = err })
			p.gaveUp(p, err)
		}
	}()
}

// end stops the process and waits for that.
func (p *part) end() {
	p.cancel()
	<-p.ended
}

// run returns nil when the context ended it, else why the part was given up.
func (p *part) run(ctx context.Context) error {
	p.say("starting " + p.title + "…")
	backoff, quick := p.tuning.backoff, 0
	for ctx.Err() == nil {
		started := time.Now()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) >= p.tuning.quickDeath {
			backoff, quick = p.tuning.backoff, 0
		}
		quick++
		var permanent *permanentError
		switch {
		case errors.As(err, &permanent):
			return fmt.Errorf("start %s: %w", p.title, err)
		case quick >= p.tuning.maxQuick:
			return fmt.Errorf("%s %w\ngiven up after %d tries in a row", p.title, err, quick)
		}
		p.log.Warn("part died", "part", p.name, "error", err)
		p.say(fmt.Sprintf("%s %s: starting it again", p.title, firstLine(err)))
		sleep(ctx, backoff)
		backoff = min(2*backoff, 16*p.tuning.backoff)
	}
	return nil
}

// permanentError marks what no restart can mend.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// once starts the process and returns when it has ended, with the reason.
func (p *part) once(ctx context.Context) error {
	cmd, err := p.command()
	if err != nil {
		return &permanentError{err}
	}
	log, offset, err := openLog(p.layout.log(p.name))
	if err != nil {
		return err
	}
	defer log.Close()
	proc, err := p.spawn.start(cmd, log)
	if err != nil {
		return &permanentError{err}
	}
	p.log.Info("part started", "part", p.name, "pid", proc.pid())
	p.set(func() { p.pid = proc.pid() })
	defer p.set(func() { p.healthy, p.pid = false, 0 })
	defer func() { p.spawn.adopt(p.killOrphans) }()
	if err := p.awaitHealth(ctx, proc); err != nil {
		proc.stop(p.tuning.stopTimeout)
		return p.explain(err, proc, offset)
	}
	p.log.Info("part healthy", "part", p.name, "after", time.Since(proc.started))
	p.onHealthy() // first: who waits for health reads the addresses that this settles
	p.set(func() { p.healthy = true })
	select {
	case <-ctx.Done():
		proc.stop(p.tuning.stopTimeout)
		return ctx.Err()
	case <-proc.done:
		proc.killGroup()
		return p.explain(nil, proc, offset)
	}
}

// awaitHealth probes until the process is healthy, has ended or takes too long.
func (p *part) awaitHealth(ctx context.Context, proc *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.tuning.startTimeout,
		fmt.Errorf("was not ready within %s", p.tuning.startTimeout))
	defer cancel()
	var last error
	for {
		if last = p.probe(ctx, proc); last == nil && !proc.hasEnded() {
			return nil
		} else if last == nil { // somebody else answered
			return errors.New("ended before it was ready")
		}
		var permanent *permanentError
		if errors.As(last, &permanent) {
			return last
		}
		select {
		case <-proc.done:
			return errors.New("ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// explain makes the error for a process that has ended, with what it wrote last. Its first line
// completes the sentence "<title> …".
func (p *part) explain(cause error, proc *process, offset int64) error {
	text := "died (" + proc.how() + ")"
	if cause == nil {
		cause = errors.New(text)
	} else {
		cause = fmt.Errorf("%w (%s)", cause, proc.how())
	}
	hint := ""
	if free, err := freeBytes(p.layout.root); err == nil && free < minFree {
		hint = fmt.Sprintf("\ndisk full: %d MiB are free in %s", free>>20, p.layout.root)
	}
	path := p.layout.log(p.name)
	return fmt.Errorf("%w\nthe end of %s:\n%s%s", cause, path, logTail(path, offset), hint)
}

// set changes the observable state and wakes who waits for it.
func (p *part) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.change)
	p.change = make(chan struct{})
}

// wait returns when the part is healthy or given up.
func (p *part) wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		healthy, failed, change := p.healthy, p.failed, p.change
		p.mu.Unlock()
		if failed != nil {
			return failed
		}
		if healthy {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", p.title, ctx.Err())
		case <-change:
		}
	}
}

// firstLine drops the log's tail.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// processID returns the current process, 0 if none runs.
func (p *part) processID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}
