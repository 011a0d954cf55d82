package zygote

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Sessions opens sessions: interpreters that keep their variables. Each has its own process tree, memory and work
// folder. A fork server, one for each package set in use, starts them. A fork server that has broken is replaced when
// the next session is opened.
type Sessions struct {
	plan    plan
	version string
	home    Executor // only for its scratch folder
	spawner *spawner
	loading sync.WaitGroup
	running atomic.Int32 // cells running now
	mu      sync.Mutex
	closed  bool
	servers map[string]*serverEntry
}

// serverEntry holds the fork server of one package set. Its lock is held while a fork server starts.
type serverEntry struct {
	mu     sync.Mutex
	server *forkServer // nil until it is started
}

var _ sandbox.Sessions = (*Sessions)(nil)

var errSessionsClosed = fmt.Errorf("%w: sessions are closed", sandbox.ErrInfrastructure)

// OpenSessions finds an interpreter and the strongest tier in which a session answers. It refuses tiers weaker than
// Options.MinTier; without a MinTier it accepts every tier, and Isolation returns which. It ignores Options.Workers and
// Options.Interpreters.
func OpenSessions(o Options) (*Sessions, error) {
	if o.Sets == nil {
		o.Sets = defaultSets()
	}
	var modules []string
	for _, set := range o.Sets {
		modules = append(modules, set.Modules...)
	}
	pythons, err := findPythons(context.Background(), o, modules)
	if err != nil {
		return nil, err
	}
	removeLeftGroups()
	s := &Sessions{spawner: newSpawner(), home: Executor{dir: o.Dir}, servers: map[string]*serverEntry{}}
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

// settle chooses the first tier, and in it the first interpreter, in which the smallest package set works.
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
			if err := landlockHolds(tier, o.Landlock); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", tier, err))
				continue
			}
			s.plan = plan{python: p, tier: tier, sets: p.sets(o.Sets)}
			if len(s.plan.sets.available) == 0 {
				faults = append(faults, fmt.Errorf("%s has none of the package sets", p.Executable))
				continue
			}
			smallest := s.plan.sets.available[0]
			m, err := s.start(smallest)
			if err == nil {
				s.servers[smallest.Name], s.version = &serverEntry{server: m}, m.version
				return nil
			}
			faults = append(faults, fmt.Errorf("%s: %w", tier, err))
		}
	}
	return unopened(faults)
}

// preload starts fork servers in the background. A failure here occurs again, and is reported, when a session needs the
// fork server.
func (s *Sessions) preload(names []string) error {
	for _, name := range names {
		set, err := s.plan.sets.named(name)
		if err != nil {
			return fmt.Errorf("preload: %w", err)
		}
		s.loading.Go(func() { _, _ = s.liveServer(set) })
	}
	return nil
}

// start starts a fork server and checks that one of its sessions answers.
func (s *Sessions) start(set PackageSet) (*forkServer, error) {
	folder := workFolder
	if s.plan.tier != sandbox.TierFull {
		var err error
		if folder, err = s.home.emptyFolder("sessions-" + set.Name); err != nil {
			return nil, err
		}
	}
	m, err := s.spawner.startForkServer(s.plan, folder, set, &s.running)
	if err != nil {
		return nil, err
	}
	if err := m.rehearse(); err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// Isolation returns the name of the tier that was obtained.
func (s *Sessions) Isolation() string { return string(s.plan.tier) }

// Python returns the interpreter's path and version.
func (s *Sessions) Python() (path, version string) { return s.plan.python.Executable, s.version }

// OpenSession implements sandbox.Sessions. It cannot know what the cells will import, so without a name it chooses the
// smallest package set. Cells can import the packages of the other sets too, but have to wait for the import.
func (s *Sessions) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if err := (sandbox.Call{Limits: limits}).Validate(); err != nil {
		return nil, err
	}
	set, err := s.plan.sets.choose(sandbox.Call{Packages: packages})
	if err != nil {
		return nil, err
	}
	m, err := s.liveServer(set)
	if err != nil {
		return nil, err
	}
	opened, err := m.open(ctx, limits.OrDefault())
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// liveServer returns the fork server of a package set. It starts one if there is none or if the old one has broken.
func (s *Sessions) liveServer(set PackageSet) (*forkServer, error) {
	s.mu.Lock()
	f := s.servers[set.Name]
	if f == nil {
		f = &serverEntry{}
		s.servers[set.Name] = f
	}
	s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.isClosed() {
		return nil, errSessionsClosed
	}
	if f.server != nil && !f.server.broken() {
		return f.server, nil
	}
	if f.server != nil {
		f.server.stop()
		f.server = nil
	}
	m, err := s.start(set)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
	}
	f.server = m
	return m, nil
}

func (s *Sessions) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends every session and removes their folders. A second call does nothing.
func (s *Sessions) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	servers := s.servers
	s.servers = map[string]*serverEntry{}
	s.mu.Unlock()
	if closed {
		return nil
	}
	s.loading.Wait()
	for _, f := range servers {
		f.mu.Lock()
		if f.server != nil {
			f.server.stop()
		}
		f.mu.Unlock()
	}
	s.spawner.close()
	return s.home.removeScratch()
}
