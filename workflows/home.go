package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// home is the host whose engine holds a run's models, as far as the workflow knows. Stages that use the models go to
// that host's own queue first. The workflow forgets a host that is gone or that has given the engine's devices to
// other runs.
type home struct {
	host string
	// hosts is how many hosts share the models. If there are several, every stage that uses the models goes to the
	// host that leads them, because an engine of another host would need as many hosts again.
	hosts   int
	finding workflow.Mutex
	open    workflow.Semaphore // of stages on the queue gpu: they wait for one engine in turn
	fixed   bool               // for a shard: its step finds another host if this one is gone
	limits  limits             // of the stages that run there
}

func newHome(ctx workflow.Context, host string, p api.Plan, l limits) *home {
	return &home{host: host, hosts: p.Hosts, finding: workflow.NewMutex(ctx),
		open: workflow.NewSemaphore(ctx, sideBySide), limits: l}
}

// sample runs a stage that samples. It uses the queue rollout, which any number of hosts serve, unless several hosts
// share the models.
func sample(ctx workflow.Context, h *home, scope api.Scope, name, summary string, in, out any) error {
	if h.hosts <= 1 {
		return start(ctx, h.limits, name, summary, in).Get(ctx, out)
	}
	return atHome(ctx, h, scope, name, summary, in, out)
}

// atHome runs a stage on the run's home. If no home is known, any host of the stage's queue takes the stage and
// becomes the home.
func atHome(ctx workflow.Context, h *home, scope api.Scope, name, summary string, in, out any) error {
	for {
		if err := h.find(ctx, scope); err != nil {
			return err
		}
		host := h.host
		if host == "" {
			err := start(ctx, h.limits, name, summary, in).Get(ctx, out)
			if done, ok := out.(api.Result); ok && err == nil {
				h.host = done.Common().Home
			}
			return err
		}
		err := startAt(ctx, h.limits, host, name, summary, in).Get(ctx, out)
		if h.fixed || !left(err) {
			return err
		}
		if h.host == host { // only the first of several concurrent stages that notice resets the home
			h.host = ""
		}
	}
}

// find asks for a home if several hosts share the models and no home is known. Concurrent stages must not each choose
// their own.
func (h *home) find(ctx workflow.Context, scope api.Scope) error {
	if h.hosts <= 1 || h.host != "" {
		return nil
	}
	if err := h.finding.Lock(ctx); err != nil {
		return err
	}
	defer h.finding.Unlock()
	if h.host != "" {
		return nil
	}
	found, err := call[api.Home](ctx, h.limits, api.FindHome,
		fmt.Sprintf("the host that leads %d", h.hosts), api.HomeInput{Scope: scope})
	h.host = found.Host
	return err
}

// left reports whether a host has not taken a stage: the host is gone, or it no longer has the run's engine and has
// no room for it.
func left(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.TimeoutType().String() == "ScheduleToStart"
	}
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == api.FailElsewhere
}
