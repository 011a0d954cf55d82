package zygote

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Sessions makes interpreters that keep their variables: one process tree, memory and work folder each.
// They are made by zygotes of their own, one *mother* for each package set that sessions have asked for; one that
// has broken is replaced at the next opening.
type Sessions struct {
	plan     plan
	version  string
	home     Executor // its scratch folder alone
	spawner  *spawner
	loading  sync.WaitGroup
	running  atomic.Int32 // cells that run now
	mu       sync.Mutex
	closed   bool
	families map[string]*family
}

// family is the mother of one package set; the lock is held while one starts.
type family struct {
	mu     sync.Mutex
	mother *mother // nil: to be started
}

var _ sandbox.Sessions = (*Sessions)(nil)

var errSessionsClosed = fmt.Errorf("%w: sessions are closed", sandbox.ErrInfrastructure)

// OpenSessions finds an interpreter and the strongest tier in which a session has answered. A MinTier is kept, where
// one is named; without one it takes what there is, and Isolation tells. Options.Workers and Options.Interpreters mean
// nothing to it.
func OpenSessions(o Options) (*Sessions, error) {
	if o.Sets == nil {
		o.Sets = DefaultSets()
	}
	var modules []string
	for _, set := range o.Sets {
		modules = append(modules, set.Modules...)
	}
	pythons, err := findPythons(context.Background(), o.Python, modules)
	if err != nil {
		return nil, err
	}
	removeLeftGroups()
	s := &Sessions{spawner: newSpawner(), home: Executor{dir: o.Dir}, families: map[string]*family{}}
	err = s.settle(pythons, o)
	if err == nil {
		err = s.preload(o.Preload)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// settle takes the first tier, and in it the first interpreter, in which the smallest package set works.
func (s *Sessions) settle(pythons []python, o Options) error {
	var faults []error
	for _, tier := range sandbox.Tiers() {
		for _, p := range pythons {
			if o.Tier != "" && o.Tier != tier {
				continue
			}
			if o.MinTier != "" && o.Tier == "" && !tier.AtLeast(o.MinTier) {
				return o.tooWeak(tier, faults)
			}
			s.plan = plan{python: p, tier: tier, sets: p.sets(o.Sets)}
			if len(s.plan.sets.there) == 0 {
				faults = append(faults, fmt.Errorf("%s has none of the package sets", p.Executable))
				continue
			}
			smallest := s.plan.sets.there[0]
			m, err := s.start(smallest)
			if err == nil {
				s.families[smallest.Name], s.version = &family{mother: m}, m.version
				return nil
			}
			faults = append(faults, fmt.Errorf("%s: %w", tier, err))
		}
	}
	return unopened(faults)
}

// preload starts mothers in the background. What fails here fails again, and is told, when a session needs it.
func (s *Sessions) preload(names []string) error {
	for _, name := range names {
		set, err := s.plan.sets.named(name)
		if err != nil {
			return fmt.Errorf("preload: %w", err)
		}
		s.loading.Go(func() { _, _ = s.living(set) })
	}
	return nil
}

// start starts a mother and has a session of hers answer.
func (s *Sessions) start(set PackageSet) (*mother, error) {
	folder := workFolder
	if s.plan.tier != sandbox.TierFull {
		var err error
		if folder, err = s.home.emptyFolder("sessions-" + set.Name); err != nil {
			return nil, err
		}
	}
	m, err := s.spawner.startMother(s.plan, folder, set, &s.running)
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
func (s *Sessions) Python() (path, version string) { return s.plan.python.Executable, s.version }

// OpenSession implements sandbox.Sessions. What the cells will import cannot be known: without a name the package
// set is the smallest, in which they can import the others' packages too, only later.
func (s *Sessions) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return nil, err
	}
	set, err := s.plan.sets.choose(sandbox.Call{Packages: packages})
	if err != nil {
		return nil, err
	}
	m, err := s.living(set)
	if err != nil {
		return nil, err
	}
	opened, err := m.open(ctx, limits.OrDefault())
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// living returns the set's mother, one that has not broken.
func (s *Sessions) living(set PackageSet) (*mother, error) {
	s.mu.Lock()
	f := s.families[set.Name]
	if f == nil {
		f = &family{}
		s.families[set.Name] = f
	}
	s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.isClosed() {
		return nil, errSessionsClosed
	}
	if f.mother != nil && !f.mother.broken() {
		return f.mother, nil
	}
	if f.mother != nil {
		f.mother.stop()
		f.mother = nil
	}
	m, err := s.start(set)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
	}
	f.mother = m
	return m, nil
}

func (s *Sessions) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends every session, and removes what they left. Closing twice is well.
func (s *Sessions) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	families := s.families
	s.families = map[string]*family{}
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.loading.Wait()
	for _, f := range families {
		f.mu.Lock()
		if f.mother != nil {
			f.mother.stop()
		}
		f.mu.Unlock()
	}
	s.spawner.close()
	return s.home.removeScratch()
}
