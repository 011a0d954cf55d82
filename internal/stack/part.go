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

// part supervises one process: it starts it, waits until it is healthy, restarts it when it dies, and gives up after
// several quick failures in a row.
type part struct {
	name  string // temporal, s3 or worker; also the log's name
	title string // for messages
	// command makes the command for one try; it may choose ports.
	command func() (*exec.Cmd, error)
	// probe asks the running process once whether it is healthy.
	probe func(ctx context.Context, p *process) error
	// onHealthy is called each time that the part becomes healthy.
	onHealthy func()
	// diagnose returns an error if the process's log shows that no restart can help. It may be nil.
	diagnose func(text string) error
	// signOfStall is an error that the process repeats in its log once it can no longer work, so that a restart is
	// needed. It may be empty.
	signOfStall string
	// private makes the process create files that other users cannot read.
	private bool
	// killOrphans also ends what the process leaves behind outside its process group.
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

// end stops the process and waits until it has ended.
func (p *part) end() {
	p.cancel()
	<-p.ended
}

// run returns nil if the context ended it, else the reason why the part was given up.
func (p *part) run(ctx context.Context) error {
	p.say("starting " + p.title + "…")
	r := newRestarts(p.tuning, time.Now())
	for ctx.Err() == nil {
		healthy, err := p.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var permanent *permanentError
		if errors.As(err, &permanent) {
			return fmt.Errorf("start %s: %w", p.title, err)
		}
		pause, why := r.after(healthy, errors.Is(err, errFromOutside), time.Now())
		if why != "" {
			return fmt.Errorf("%s %w\ngiven up %s", p.title, err, why)
		}
		p.log.Warn("part died", "part", p.name, "error", err)
		p.say(fmt.Sprintf("%s %s: starting it again", p.title, firstLine(err)))
		sleep(ctx, pause)
	}
	return nil
}

// permanentError marks an error that no restart can fix.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// once starts the process and returns when it has ended: why, and since when it had been healthy (zero if never).
func (p *part) once(ctx context.Context) (healthy time.Time, err error) {
	cmd, err := p.command()
	if err != nil {
		return healthy, &permanentError{err}
	}
	log, offset, err := openLog(p.layout.log(p.name))
	if err != nil {
		return healthy, err
	}
	defer log.Close()
	proc, err := p.spawn.start(cmd, log, p.private)
	if err != nil {
		return healthy, &permanentError{err}
	}
	p.log.Info("part started", "part", p.name, "pid", proc.pid())
	p.set(func() { p.pid = proc.pid() })
	defer p.set(func() { p.healthy, p.pid = false, 0 })
	defer func() { p.spawn.adopt(p.killOrphans) }()
	watch := p.watchLog(offset)
	if err := p.awaitHealth(ctx, proc, watch); err != nil {
		proc.stop(p.tuning.stopTimeout)
		return healthy, p.explain(err, proc, watch)
	}
	p.log.Info("part healthy", "part", p.name, "after", time.Since(proc.started))
	p.onHealthy() // first: those who wait for health read the addresses that this fixes
	healthy = time.Now()
	p.set(func() { p.healthy = true })
	return healthy, p.stay(ctx, proc, watch)
}

// stay waits until the process ends. It stops the process if the context ends, or if the log says that the process
// cannot work.
func (p *part) stay(ctx context.Context, proc *process, watch *logWatch) error {
	look := time.NewTicker(watchPeriod)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			proc.stop(p.tuning.stopTimeout)
			return ctx.Err()
		case <-proc.done:
			proc.killGroup()
			return p.explain(nil, proc, watch)
		case <-look.C:
			if err := watch.look(); err != nil {
				proc.stop(p.tuning.stopTimeout)
				return p.explain(err, proc, watch)
			}
		}
	}
}

// awaitHealth probes until the process is healthy, has ended or takes too long.
func (p *part) awaitHealth(ctx context.Context, proc *process, watch *logWatch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.tuning.startTimeout,
		fmt.Errorf("was not ready within %s", p.tuning.startTimeout))
	defer cancel()
	var last error
	for {
		if last = p.probe(ctx, proc); last == nil && !proc.hasEnded() {
			return nil
		} else if last == nil { // another process answered
			return errors.New("ended before it was ready")
		}
		var permanent *permanentError
		if errors.As(last, &permanent) {
			return last
		}
		if err := watch.look(); err != nil {
			return err
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

// explain returns the error for a process that has ended, with the end of its log. Its first line completes the
// sentence "<title> …".
func (p *part) explain(cause error, proc *process, watch *logWatch) error {
	if missing := (*missingNamespaceError)(nil); errors.As(cause, &missing) {
		return cause // the server is well; its log would only hide the message
	}
	if why := watch.look(); why != nil {
		cause = why
	}
	switch {
	case cause == nil:
		// A server that was healthy and ends with status 0 was asked to end.
		cause = &endedError{fmt.Errorf("died (%s)", proc.how()), proc.killed() || proc.err == nil}
	case !proc.stopped:
		cause = &endedError{fmt.Errorf("%w (%s)", cause, proc.how()), proc.killed()}
	default:
		cause = fmt.Errorf("%w (%s)", cause, proc.how())
	}
	hint := ""
	if free, err := freeBytes(p.layout.root); err == nil && free < minFree {
		hint = fmt.Sprintf("\ndisk full: %d MiB are free in %s", free>>20, p.layout.root)
	}
	path := p.layout.log(p.name)
	return fmt.Errorf("%w\nthe end of %s:\n%s%s", cause, path, logTail(path, watch.from), hint)
}

// set changes the observable state and wakes those who wait for a change.
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

// firstLine returns the error without the end of the log.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// processID returns the id of the current process, or 0 if none runs.
func (p *part) processID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}
