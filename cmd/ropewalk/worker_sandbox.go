package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// workerSandbox runs a worker's tool calls.
type workerSandbox struct {
	executor sandbox.Executor
	sessions sandbox.Sessions
	tier     sandbox.Tier // of both
	closers  []io.Closer
}

// Close implements io.Closer.
func (s workerSandbox) Close() error {
	var faults []error
	for _, c := range s.closers {
		faults = append(faults, c.Close())
	}
	return errors.Join(faults...)
}

// makeRoom raises GOMAXPROCS by the number of threads that wait in system calls, one for each call that runs in the
// sandbox. The Go runtime counts such a thread as running until it looks, which takes up to 10 ms. Without room, one of
// two processors was idle for an eighth of a rollout.
func makeRoom(waiting int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + waiting)
	}
}

// openSandbox opens the worker's sandbox, or connects to sandbox services. It takes the strongest tier that the machine
// grants; each run's recipe states the weakest that it accepts (sandbox.min_tier).
func (o workerOptions) openSandbox(ctx context.Context, scratch string) (workerSandbox, error) {
	if len(o.services) > 0 {
		c, err := openSandboxClient(ctx, o.services, sandbox.DefaultPreset)
		if err != nil {
			return workerSandbox{}, err
		}
		// A node that joins later must not be weaker than the tier that recipes were checked against.
		return workerSandbox{executor: c, sessions: c, tier: c.Hold(), closers: []io.Closer{c}}, nil
	}
	options := zygote.Options{Python: sandboxPython(""), Preferred: toolsPython(), Workers: o.sandbox, Dir: scratch,
		MinTier: sandbox.TierRlimits}
	executor, err := zygote.Open(options)
	if err != nil {
		return workerSandbox{}, err
	}
	makeRoom(executor.Workers())
	late := zygote.NewLateSessions(options, executor)
	return workerSandbox{executor: executor, sessions: late, tier: sandbox.Tier(executor.Isolation()),
		closers: []io.Closer{late, executor}}, nil
}
