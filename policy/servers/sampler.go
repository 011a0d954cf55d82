package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// Options say which servers a sampler has.
type Options struct {
	Servers []Server
	// Score is our own forward pass, with which the servers' values are compared after every Load.
	Score policy.Score
	// Wait pauses; nil = by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// Sampler generates with inference servers; it implements policy.Sampler. A Load that fails after a server has taken
// the new weights drains that server.
type Sampler struct {
	o        Options
	servers  []*server
	can      policy.Capabilities
	dispatch dispatcher
	finished finished

	mu     sync.RWMutex    // held for reading by Generate, for writing by Load
	closed context.Context // ends with the sampler
	end    context.CancelFunc
	once   sync.Once
	loaded loaded
}

// loaded is the published policy.
type loaded struct {
	digest   string // of its folder; "" = none
	shape    checkpoint.Shape
	probe    []int32
	expected []float32 // our own log-probabilities of the probe
}

// server is a server and what it is known to be able to do. The dispatcher's lock guards its load.
type server struct {
	*link
	dialect
	index int
	load  load
}

// Open connects to the servers and establishes the facts about them. A server that cannot be asked is drained, if
// others can; Away says why.
func Open(ctx context.Context, o Options) (*Sampler, error) {
	if o.Wait == nil {
		o.Wait = openai.Wait
	}
	s := &Sampler{o: o}
	s.closed, s.end = context.WithCancel(context.Background())
	s.finished.most = finishedBytes
	for i, settings := range o.Servers {
		settings = settings.withDefaults()
		make, ok := dialects[settings.Kind]
		if !ok {
			return nil, bad("server %d: no kind of servers is called %q", i, settings.Kind)
		}
		client, err := openai.Open(settings.address())
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", settings.Name(), err)
		}
		l := &link{Server: settings, client: client}
		s.servers = append(s.servers, &server{link: l, dialect: make(l), index: i})
	}
	if len(s.servers) == 0 {
		return nil, bad("no servers")
	}
	each(s.servers, func(v *server) { v.load.away = v.establish(ctx) })
	var known []Facts
	for _, v := range s.servers {
		if v.load.away == nil {
			known = append(known, v.known)
		}
	}
	if len(known) == 0 {
		err := s.allAway("ask the servers what they are")
		return nil, errors.Join(err, s.Close())
	}
	s.can = common(known)
	return s, s.dispatch.init(s.servers)
}

// each runs fn for all servers at once and waits.
func each(servers []*server, fn func(*server)) {
	var all rescue.WaitGroup
	for _, v := range servers {
		all.Go(func() { fn(v) })
	}
	all.Wait()
}

// establish asks a server for its facts.
func (v *server) establish(ctx context.Context) error {
	facts, err := v.facts(ctx)
	if err != nil {
		return err
	}
	facts.Server = v.Name()
	v.known = facts
	return nil
}

// Facts returns what is known of the servers that have answered.
func (s *Sampler) Facts() []Facts {
	var out []Facts
	for _, v := range s.servers {
		if v.known.Server != "" {
			out = append(out, v.known)
		}
	}
	return out
}

// Away returns why servers are not in use; nil if all are.
func (s *Sampler) Away() error {
	var errs []error
	s.dispatch.mu.Lock()
	defer s.dispatch.mu.Unlock()
	for _, v := range s.servers {
		errs = append(errs, v.load.away)
	}
	return errors.Join(errs...)
}

func (s *Sampler) allAway(what string) error {
	return fmt.Errorf("%w: %s: none of %d servers can be used:\n%w", policy.ErrLost, what, len(s.servers), s.Away())
}

// Load publishes a folder to every server and checks what each then says about the probe. It ends when every server
// has the new version or is drained. A server whose values are not those of the folder makes it fail with a Mismatch.
func (s *Sampler) Load(ctx context.Context, role policy.Role, dir string, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.ready(ctx)
	if err == nil && role != policy.RolePolicy {
		err = bad("servers hold the policy only")
	}
	if err == nil {
		err = s.load(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("load %s: %w", role, err)
	}
	return nil
}

func (s *Sampler) load(ctx context.Context, dir string) error {
	next, v, err := s.prepare(ctx, dir)
	if err != nil {
		return err
	}
	defer v.checkpoint.Close()
	if err := s.dispatch.publish(); err != nil {
		return err
	}
	var mismatches []error
	var mu sync.Mutex
	each(s.servers, func(to *server) {
		err := s.publish(ctx, to, v, next)
		s.dispatch.use(to, err)
		if err == nil {
			return
		}
		slog.Warn("a server is drained: it has not the new version", "server", to.Name(), "version", v.digest,
			"error", err)
		if errors.Is(err, policy.ErrWrongVersion) {
			mu.Lock()
			defer mu.Unlock()
			mismatches = append(mismatches, err)
		}
	})
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case len(mismatches) > 0:
		err = errors.Join(mismatches...)
	case !s.dispatch.any():
		err = s.allAway(fmt.Sprintf("publish version %.16s", v.digest))
	}
	if err != nil {
		s.dispatch.drainAll(fmt.Errorf("version %.16s was not published: %w", v.digest, err))
		return err
	}
	if next.digest != s.loaded.digest {
		s.finished.clear()
	}
	s.loaded = next
	return nil
}

// prepare reads the folder and computes what the servers are compared with.
func (s *Sampler) prepare(ctx context.Context, dir string) (next loaded, v version, err error) {
	if v.checkpoint, err = checkpoint.Open(dir, false); err != nil {
		return next, v, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.checkpoint.Close())
		}
	}()
	next.shape = v.checkpoint.Shape
	if next.shape.ValueHead {
		return next, v, bad("a critic does not generate")
	}
	if next.digest, err = checkpoint.Digest(dir); err != nil {
		return next, v, err
	}
	v.folder = dir
	if v.digest, err = modelDigest(dir); err != nil {
		return next, v, err
	}
	if !s.can.TokenIDs { // servers of text score no tokens
		return next, v, nil
	}
	next.probe = probeOf(next.shape)
	if len(next.probe) > 1 {
		if next.expected, err = s.o.Score(ctx, dir, next.probe); err != nil {
			return next, v, fmt.Errorf("compute our own log-probabilities of the probe: %w", err)
		}
	}
	return next, v, nil
}

// publish makes one server use a version, and verifies that it does.
func (s *Sampler) publish(ctx context.Context, to *server, v version, next loaded) (err error) {
	for attempt := 1; ; attempt++ {
		if err = s.publishOnce(ctx, to, v, next); err == nil {
			to.digest = v.digest
			return nil
		}
		to.digest = ""
		var known *openai.Error
		if ctx.Err() != nil || !errors.As(err, &known) || !known.Retry() || attempt >= to.Attempts {
			return err
		}
		if err := s.o.Wait(ctx, known.Pause(attempt)); err != nil {
			return err
		}
	}
}

func (s *Sampler) publishOnce(ctx context.Context, to *server, v version, next loaded) error {
	if to.known.Server == "" {
		if err := to.establish(ctx); err != nil {
			return err
		}
		if !covers(s.can, to.known.Capabilities) {
			return to.fault("it cannot do what the other servers can: %+v, want %+v", to.known.Capabilities, s.can)
		}
	}
	to.known.Positions = cmp.Or(to.known.Positions, next.shape.Positions)
	before := s.loaded.expected
	if next.digest == s.loaded.digest || len(s.loaded.expected) != len(next.expected) {
		before = nil
	}
	to.digest = "" // no reply is expected to be by either version
	if to.known.Capabilities.Weights != policy.WeightsFixed {
		if err := to.dialect.publish(ctx, v); err != nil {
			return err
		}
	} else if t, ok := to.dialect.(texts); ok {
		if err := t.read(v.checkpoint); err != nil {
			return err
		}
	}
	if len(next.probe) < 2 {
		return nil
	}
	if d, ok := to.dialect.(drawer); ok {
		return s.compareDraws(ctx, to, d, v, next)
	}
	if err := to.verify(ctx, to.dialect, v, next.probe, next.expected, before); err != nil {
		return err
	}
	to.unstage(v.digest)
	return nil
}

// texts is a dialect that passes text in the place of ids, and needs the model's tokenizer for that.
type texts interface {
	read(c *checkpoint.Checkpoint) error
}

func (s *Sampler) ready(ctx context.Context) error {
	select {
	case <-s.closed.Done():
		return fmt.Errorf("%w: the sampler is closed", policy.ErrLost)
	default:
		return ctx.Err()
	}
}

// Generate asks the servers for one response to each prefix. Rows whose responses are finished are kept when others
// fail, and are not asked for again when the caller repeats the request or a part of it.
func (s *Sampler) Generate(ctx context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.check(ctx, req); err != nil {
		return policy.Generated{}, fmt.Errorf("generate: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(s.closed, func() { cancel(fmt.Errorf("%w: the sampler is closed", policy.ErrLost)) })
	defer stop()
	out, err := s.generate(ctx, req)
	if err != nil {
		return policy.Generated{}, fmt.Errorf("generate: %w", err)
	}
	return out, nil
}

// check returns why a request cannot be answered now.
func (s *Sampler) check(ctx context.Context, req policy.GenerateRequest) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if req.Role != policy.RolePolicy || s.loaded.digest == "" {
		return fmt.Errorf("%w: %s", policy.ErrNotLoaded, req.Role)
	}
	if err := checkRequest(s.loaded.shape, s.longest(), s.can, req); err != nil {
		return err
	}
	for i, prefix := range req.Prefixes {
		if err := s.checkLost(len(prefix), req.MaxTokens[i]); err != nil {
			return err
		}
	}
	return nil
}

// longest is the longest sequence that a server takes, also one that is away and may come back.
func (s *Sampler) longest() int {
	most := 0
	for _, v := range s.servers {
		most = max(most, v.longest())
	}
	return most
}

// checkLost returns an error if servers are in use and none of them takes a row of that prefix and budget. A server
// that is away does, so a later attempt may succeed.
func (s *Sampler) checkLost(prefix, budget int) error {
	s.dispatch.mu.Lock()
	defer s.dispatch.mu.Unlock()
	most := 0
	for _, v := range s.servers {
		if v.load.up {
			most = max(most, v.longest())
		}
	}
	if most == 0 || prefix+budget <= most {
		return nil
	}
	return fmt.Errorf("%w: %w: a prefix of %d tokens and a budget of %d; longer ones than %d are away", policy.ErrLost,
		errStuck, prefix, budget, most)
}

// Capabilities are what all servers can do that answered when the sampler was opened.
func (s *Sampler) Capabilities() policy.Capabilities { return s.can }

// State names the published folder.
func (s *Sampler) State(ctx context.Context, role policy.Role) (policy.State, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil || role != policy.RolePolicy {
		return policy.State{}, err
	}
	return policy.State{Digest: s.loaded.digest}, nil
}

// Describe names the servers.
func (s *Sampler) Describe() policy.Description {
	names := make([]string, len(s.servers))
	for i, v := range s.servers {
		names[i] = v.Name()
	}
	return policy.Description{Device: "servers: " + strings.Join(names, ", ")}
}

// Close ends requests that run and closes the connections. The servers go on.
func (s *Sampler) Close() error {
	s.once.Do(func() {
		s.end()
		for _, v := range s.servers {
			v.client.Close()
		}
	})
	return nil
}
