package stack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// program is what a supervisor runs.
type program struct {
	// command makes the command for one try; it may choose ports.
	command func() (*exec.Cmd, error)
	// probe asks the running process once whether it is healthy.
	probe func(ctx context.Context, p *process) error
	// healthy is called each time that the process has become healthy. It returns the server's addresses, which are
	// fixed from then on, and a line that says so.
	healthy func() (Addresses, string)
	// diagnose returns an error if the process's log shows that no restart can help. It may be nil.
	diagnose func(text string) error
	// signOfStall is an error that the process repeats in its log once it can no longer work, so that a restart is
	// needed. It may be empty.
	signOfStall string
}

// run starts the program, and again when it dies. It returns nil if the context ended, else the reason why the program
// was given up.
func (s *supervisor) run(ctx context.Context) error {
	title := titles[s.Server]
	s.say("starting " + title + "…")
	r := newRestarts(times, time.Now())
	for ctx.Err() == nil {
		healthy, err := s.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var permanent *permanentError
		if errors.As(err, &permanent) {
			return fmt.Errorf("start %s: %w", title, err)
		}
		pause, why := r.after(healthy, errors.Is(err, errFromOutside), time.Now())
		if why != "" {
			return fmt.Errorf("%s %w\ngiven up %s", title, err, why)
		}
		s.log.Warn("server died", "error", err)
		line, _, _ := strings.Cut(err.Error(), "\n") // without the end of the log
		s.say(fmt.Sprintf("%s %s: starting it again", title, line))
		sleep(ctx, pause)
	}
	return nil
}

// permanentError marks an error that no restart can fix.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// once starts the process and returns when it has ended: why, and since when it had been healthy (zero if never).
func (s *supervisor) once(ctx context.Context) (healthy time.Time, err error) {
	cmd, err := s.program.command()
	if err != nil {
		return healthy, &permanentError{err}
	}
	log, offset, err := openLog(s.files.log(s.Server))
	if err != nil {
		return healthy, err
	}
	defer log.Close()
	proc, err := startProcess(cmd, log)
	if err != nil {
		return healthy, &permanentError{err}
	}
	s.log.Info("server started", "pid", proc.pid())
	s.state.Server = proc.pid()
	s.tell()
	defer func() {
		s.state.Healthy, s.state.Server = false, 0
		for range 2 { // the second call reaps what the first killed
			adoptOrphans(0, true)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	watch := s.watchLog(offset)
	if err := s.awaitHealth(ctx, proc, watch); err != nil {
		proc.stop(times.stopTimeout)
		return healthy, s.explain(err, proc, watch)
	}
	s.log.Info("server healthy", "after", time.Since(proc.started))
	healthy = time.Now()
	addresses, line := s.program.healthy()
	s.state.Healthy, s.state.Addresses = true, addresses
	s.say(line)
	return healthy, s.stay(ctx, proc, watch)
}

// stay waits until the process ends. It stops the process if the context ends, or if the log says that the process
// cannot work.
func (s *supervisor) stay(ctx context.Context, proc *process, watch *logWatch) error {
	look := time.NewTicker(watchPeriod)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			proc.stop(times.stopTimeout)
			return ctx.Err()
		case <-proc.done:
			proc.killGroup()
			return s.explain(nil, proc, watch)
		case <-look.C:
			if err := watch.look(); err != nil {
				proc.stop(times.stopTimeout)
				return s.explain(err, proc, watch)
			}
			adoptOrphans(proc.pid(), false)
			if s.untold {
				s.tell()
			}
		}
	}
}

// awaitHealth probes until the process is healthy, has ended or takes too long.
func (s *supervisor) awaitHealth(ctx context.Context, proc *process, watch *logWatch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, times.startTimeout,
		fmt.Errorf("was not ready within %s", times.startTimeout))
	defer cancel()
	for {
		last := s.program.probe(ctx, proc)
		if last == nil && !proc.hasEnded() {
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
func (s *supervisor) explain(cause error, proc *process, watch *logWatch) error {
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
	if free, err := freeBytes(s.files.root); err == nil && free < minFree {
		hint = fmt.Sprintf("\ndisk full: %d MiB are free in %s", free>>20, s.files.root)
	}
	return fmt.Errorf("%w\nthe end of %s:\n%s%s", cause, watch.path, logTail(watch.path, watch.from), hint)
}
