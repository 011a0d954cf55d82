package torch

import (
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
)

// Memory is a device's memory in bytes, of the rank that uses most.
type Memory struct {
	Allocated int64 `json:"allocated"`
	Peak      int64 `json:"peak"`
	Reserved  int64 `json:"reserved"`
}

// pulse records what the engine is doing, and since when it has made no progress.
type pulse struct {
	mu     sync.Mutex
	name   string // of the call; "" when idle
	id     uint64
	ticks  uint64
	moved  time.Time
	memory Memory
	peak   int64 // the greatest so far

	heard func(wire.Beat) // tests': gets the beats of the running call
}

func (p *pulse) begin(id uint64, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.id, p.moved = name, id, time.Now()
}

func (p *pulse) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name, p.id = "", 0
}

func (p *pulse) call() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name
}

// beat records a beat. A call makes progress while its ticks grow.
func (p *pulse) beat(b wire.Beat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory = Memory(b.Memory)
	p.peak = max(p.peak, b.Memory.Peak)
	if b.Ticks != p.ticks {
		p.ticks, p.moved = b.Ticks, time.Now()
	}
	if p.heard != nil && b.At != 0 && b.At == p.id {
		p.heard(b)
	}
}

// idleTime returns how long the call has made no progress.
func (p *pulse) idleTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == 0 {
		return 0
	}
	return time.Since(p.moved)
}

func (p *pulse) use() (m Memory, peak int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory, p.peak
}
