package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// home is the host whose engine holds a run's models, as far as is known, and how stages that use them find it: they go to
// that host's own queue first. A host that is gone, or that has since given the engine's devices to others, is left.
type home struct {
	host string
	// hosts share the models where there are several. Then whatever uses them goes to the one host that leads them, since
	// an engine of another host's would want as many hosts again.
	hosts   int
	finding workflow.Mutex
}

func newHome(ctx workflow.Context, host string, p wire.Plan) *home {
	return &home{host: host, hosts: p.Hosts, finding: workflow.NewMutex(ctx)}
}

// sample runs a stage that samples: on the queue rollout, which any number of hosts serve, unless several hosts share the models.
func sample[R any](ctx workflow.Context, h *home, scope wire.Scope, name, summary string, input any, done func(*R) *wire.Done) (R, error) {
	if h.hosts <= 1 {
		return call[R](ctx, name, summary, input)
	}
	return atHome(ctx, h, scope, name, summary, input, done)
}

// atHome runs a stage on the run's home. Where none is known any host of the stage's queue takes it, which is the home from
// then on.
func atHome[R any](ctx workflow.Context, h *home, scope wire.Scope, name, summary string, input any, done func(*R) *wire.Done) (R, error) {
	for {
		var out R
		if err := h.find(ctx, scope); err != nil {
			return out, err
		}
		host := h.host
		if host == "" {
			out, err := call[R](ctx, name, summary, input)
			if err == nil {
				h.host = done(&out).Home
			}
			return out, err
		}
		err := startAt(ctx, host, name, summary, input).Get(ctx, &out)
		if !left(err) {
			return out, err
		}
		if h.host == host { // the first of those that find out side by side
			h.host = ""
		}
	}
}

// find asks for a home where several hosts share the models and none is known: stages side by side must not each choose one.
func (h *home) find(ctx workflow.Context, scope wire.Scope) error {
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
	found, err := call[wire.Home](ctx, wire.FindHome, fmt.Sprintf("the host that leads %d", h.hosts), wire.HomeInput{Scope: scope})
	h.host = found.Host
	return err
}

// left reports that a host has not taken a stage: it is gone, or it has no engine of the run's any more and no room.
func left(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.TimeoutType().String() == "ScheduleToStart"
	}
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == wire.FailElsewhere
}
