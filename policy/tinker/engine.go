package tinker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Engine trains and samples at a server; it implements policy.Engine. Its calls take turns.
type Engine struct {
	o       Options
	link    *link
	scratch string

	mu       sync.Mutex
	closed   bool
	session  *session // nil: it is lost, and the next Load begins another
	facts    Facts
	roles    map[policy.Role]*role
	kept     policy.Kept
	folders  int // made so far in scratch
	samplers int // sampling sessions so far
	compared bool
}

// role is a model at the server and what is known of it.
type role struct {
	*model
	shape checkpoint.Shape
	// folder holds the base's files, and the whole checkpoint if digest is set.
	folder string
	digest string // of the folder as it was loaded or saved; "" after a step
	step   int64
	// sealed says that the model was loaded without its optimiser's state, which the server has nevertheless.
	sealed  bool
	kept    map[policy.Kept]pass
	queue   []pass // that the next step sends
	path    string // of the current weights for sampling; "" = not published
	sampler string // that samples from path; "" = none yet
}

// Open connects to a server and finds out its convention. shape is the base's. If the server offers downloads, the
// scale of its gradients is found out too, and checkpoints hold adapters. The caller closes the engine.
func Open(ctx context.Context, o Options, shape checkpoint.Shape) (*Engine, error) {
	o.Server = o.Server.withDefaults()
	if o.Wait == nil {
		o.Wait = openai.Wait
	}
	switch {
	case o.LoRA.Rank < 1 || !Choosable(o.LoRA.Targets):
		return nil, bad("LoRA of rank %d for %v", o.LoRA.Rank, o.LoRA.Targets)
	case o.LoRA.Alpha != Alpha:
		return nil, bad("LoRA: alpha is %v; servers use %v", o.LoRA.Alpha, Alpha)
	case shape.Vocab < 8:
		return nil, bad("a vocabulary of %d", shape.Vocab)
	}
	client, err := openai.Open(o.Server.address())
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", o.Server.Name(), err)
	}
	e := &Engine{o: o, link: &link{Server: o.Server, client: client, wait: o.Wait}, roles: map[policy.Role]*role{}}
	if e.scratch, err = os.MkdirTemp(o.Scratch, "tinker-"); err != nil {
		return nil, err
	}
	if e.session, e.facts, err = survey(ctx, e.link, o, shape); err != nil {
		client.Close()
		return nil, errors.Join(err, os.RemoveAll(e.scratch))
	}
	return e, nil
}

// Facts returns what is known of the server.
func (e *Engine) Facts() Facts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.facts
}

// Lacks implements policy.Lacking: the API returns neither entropies nor values.
func (e *Engine) Lacks() policy.Outputs { return policy.OutEntropy | policy.OutValue }

// Capabilities implements policy.Sampler.
func (e *Engine) Capabilities() policy.Capabilities { return capabilities() }

// Describe names the server.
func (e *Engine) Describe() policy.Description { return policy.Description{Device: e.link.Name()} }

// State describes the model that is loaded under role.
func (e *Engine) State(ctx context.Context, name policy.Role) (s policy.State, err error) {
	err = e.call(ctx, "state", func() error {
		if r := e.roles[name]; r != nil {
			s = policy.State{Digest: r.digest, Step: r.step, Params: params(r.shape, e.o.LoRA)}
		}
		return nil
	})
	return s, err
}

// call takes the engine for a call, whose errors begin with what it was to do.
func (e *Engine) call(ctx context.Context, what string, do func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := ctx.Err()
	switch {
	case err != nil:
	case e.closed:
		err = fmt.Errorf("%w: the engine is closed", policy.ErrLost)
	default:
		err = do()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// loaded returns a role's model, for callers that have the engine.
func (e *Engine) loaded(name policy.Role) (*role, error) {
	r := e.roles[name]
	switch {
	case r != nil:
		return r, nil
	case e.session == nil:
		return nil, fmt.Errorf("%w: the session at server %s has ended", policy.ErrLost, e.link.Name())
	}
	return nil, fmt.Errorf("%w: %s", policy.ErrNotLoaded, name)
}

// after looks at an error of the server: if it does not know what it was asked about, all models are lost. The session
// is begun again by the next Load.
func (e *Engine) after(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if errors.Is(err, policy.ErrBadRequest) {
		return err
	}
	var known *openai.Error
	connection := errors.As(err, &known) && known.Kind != openai.Rejected && known.Kind != openai.Denied
	if connection || gone(err) {
		e.lose()
		return lost(err)
	}
	return err
}

// lose forgets the session and all models.
func (e *Engine) lose() {
	if e.session != nil {
		e.session.close()
	}
	for name := range e.roles {
		e.drop(name)
	}
	e.session = nil
}

// drop forgets a role's model.
func (e *Engine) drop(name policy.Role) {
	if r := e.roles[name]; r != nil {
		_ = os.RemoveAll(r.folder) // the scratch folder goes with the engine
		delete(e.roles, name)
	}
}

// newFolder makes a folder for the files of a model.
func (e *Engine) newFolder() (string, error) {
	e.folders++
	dir := filepath.Join(e.scratch, fmt.Sprint(e.folders))
	return dir, os.Mkdir(dir, 0o755)
}

// closeLimit bounds the time in which models are unloaded at the end.
const closeLimit = 10 * time.Second

// Close unloads the models and ends the session. Checkpoints at the server stay.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if e.session != nil {
		for _, r := range e.roles {
			e.session.unload(ctx, r.model)
		}
	}
	e.lose()
	e.link.client.Close()
	return os.RemoveAll(e.scratch)
}
