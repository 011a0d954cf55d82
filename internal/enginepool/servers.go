package enginepool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
)

// served is the sampler of some inference servers. Runs that name the same servers share it.
type served struct {
	mu      sync.Mutex // held while it opens
	sampler *Sampler
}

// survey establishes what the recipe's servers are and refuses a recipe that needs more than they offer, or of which a
// server cannot be asked: a person is there to correct it.
func (p *Pool) survey(ctx context.Context, r *recipes.Recipe) ([]servers.Facts, error) {
	s, err := p.connect(ctx, r)
	if err != nil {
		return nil, unlessEnded(ctx, err)
	}
	defer s.Close()
	if err := s.Away(); err != nil {
		return nil, unlessEnded(ctx, badinput.Errorf("engine.servers: %w", err))
	}
	return s.Facts(), check(s.Describe().Device, s.Capabilities(), r)
}

// unlessEnded makes an error one that the caller of the command can correct, unless the work was cancelled.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return badinput.Of(err)
}

func (p *Pool) connect(ctx context.Context, r *recipes.Recipe) (*servers.Sampler, error) {
	if p.score == nil {
		return nil, errors.New("engine.servers: this worker has no engine to compare servers with")
	}
	s, err := servers.Open(ctx, servers.Options{Servers: r.Engine.Servers, Score: p.score})
	if err != nil {
		return nil, fmt.Errorf("engine.servers: %w", err)
	}
	return s, nil
}

// servers returns the sampler of a recipe's servers. Servers that cannot be asked now are left out as long as others
// can.
func (p *Pool) servers(ctx context.Context, r *recipes.Recipe) (*Sampler, error) {
	key, err := json.Marshal(r.Engine.Servers)
	if err != nil {
		return nil, fmt.Errorf("engine.servers: %w", err)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the worker ends")
	}
	at := p.remote[string(key)]
	if at == nil {
		at = &served{}
		p.remote[string(key)] = at
	}
	p.mu.Unlock()
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.sampler == nil {
		s, err := p.connect(ctx, r)
		if err != nil {
			return nil, err
		}
		at.sampler = &Sampler{Resident: p.resident(s), sampler: s, shared: &sync.RWMutex{}}
	}
	return at.sampler, at.sampler.check(r)
}

// closeServers closes the connections to all servers.
func (p *Pool) closeServers() error {
	p.mu.Lock()
	all := p.remote
	p.remote = map[string]*served{}
	p.mu.Unlock()
	var errs []error
	for _, at := range all {
		at.mu.Lock()
		if at.sampler != nil {
			errs = append(errs, at.sampler.sampler.(*servers.Sampler).Close())
		}
		at.mu.Unlock()
	}
	return errors.Join(errs...)
}

// useShared runs fn with a version published, next to others who use the same version. Another version is published
// when they have left.
func (s *Sampler) useShared(ctx context.Context, v Version, fn func(policy.Sampler) error) error {
	for {
		s.shared.RLock()
		if s.publishes(v) {
			err := fn(s.sampler)
			s.shared.RUnlock()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.noteLoss(err)
		}
		s.shared.RUnlock()
		if err := s.publishShared(ctx, v); err != nil {
			return err
		}
	}
}

func (s *Sampler) publishes(v Version) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Holds(policy.RolePolicy, v.name())
}

func (s *Sampler) publishShared(ctx context.Context, v Version) error {
	s.shared.Lock()
	defer s.shared.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Holds(policy.RolePolicy, v.name()) {
		return nil
	}
	return s.load(ctx, policy.RolePolicy, v, false)
}
