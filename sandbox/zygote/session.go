package zygote

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Sessions makes interpreters that keep their variables: one process tree, memory and work folder each.
// They are made by a zygote of their own, the *mother*; one that has broken is replaced at the next opening.
type Sessions struct {
	plan    plan
	version string
	home    Executor // its scratch folder alone
	spawner *spawner

	mu     sync.Mutex
	closed bool
	mother *mother // nil: to be started
}

var _ sandbox.Sessions = (*Sessions)(nil)

// OpenSessions finds an interpreter and the strongest tier in which a session has answered. Options.Workers means nothing to it.
func OpenSessions(o Options) (*Sessions, error) {
	pythons, err := findPythons(context.Background(), o.Python)
	if err != nil {
		return nil, err
	}
	s := &Sessions{spawner: newSpawner(), home: Executor{dir: o.Dir}}
	if err := s.settle(pythons, o.Tier); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// settle takes the first tier, and in it the first interpreter, that works.
func (s *Sessions) settle(pythons []string, only sandbox.Tier) error {
	var faults []error
	for _, tier := range sandbox.Tiers() {
		for _, python := range pythons {
			if only != "" && only != tier {
				continue
			}
			s.plan = plan{python: python, tier: tier}
			m, err := s.start()
			if err == nil {
				s.mother, s.version = m, m.version
				return nil
			}
			faults = append(faults, fmt.Errorf("%s: %w", tier, err))
		}
	}
	return unopened(errors.Join(faults...))
}

// start starts a mother and has a session of hers answer.
func (s *Sessions) start() (*mother, error) {
	folder := workFolder
	if s.plan.tier != sandbox.TierFull {
		var err error
		if folder, err = s.home.emptyFolder(0); err != nil {
			return nil, err
		}
	}
	m, err := s.spawner.startMother(s.plan, folder)
	if err != nil {
		return nil, err
	}
	if err := m.rehearse(); err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// Isolation names the tier that was obtained.
func (s *Sessions) Isolation() string { return string(s.plan.tier) }

// Python returns the interpreter's path and version.
func (s *Sessions) Python() (path, version string) { return s.plan.python, s.version }

// OpenSession implements sandbox.Sessions.
func (s *Sessions) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if packages != "" && packages != sandbox.PackagesBare {
		return nil, fmt.Errorf("%w: sessions have no package set %q", sandbox.ErrBadCall, packages)
	}
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return nil, err
	}
	m, err := s.living()
	if err != nil {
		return nil, err
	}
	opened, err := m.open(ctx, packages, limits.OrDefault())
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// living returns a mother that has not broken.
func (s *Sessions) living() (*mother, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%w: sessions are closed", sandbox.ErrInfrastructure)
	}
	if s.mother != nil && !s.mother.broken() {
		return s.mother, nil
	}
	if s.mother != nil {
		s.mother.stop()
		s.mother = nil
	}
	m, err := s.start()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
	}
	s.mother = m
	return m, nil
}

// Close ends every session, and removes what they left. Closing twice is well.
func (s *Sessions) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.mother != nil {
		s.mother.stop()
	}
	s.spawner.close()
	return s.home.removeScratch()
}
