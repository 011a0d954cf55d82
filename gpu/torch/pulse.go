package torch

import (
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
)

// Progress is a beat in words for a heartbeat.
type Progress struct {
	Call  string // forward, backward, …
	Phase string
	// Ticks is the work done since the process began; what counts is that it grows.
	Ticks uint64
	// Done of Total parts of the phase.
	Done, Total int
	Memory      Memory
}

// Memory is a device's in bytes, of the rank that holds most.
type Memory struct {
	Allocated int64 `json:"allocated"`
	Peak      int64 `json:"peak"`
	Reserved  int64 `json:"reserved"`
}

// pulse knows what the engine is doing, and since when nothing has got done.
type pulse struct {
	mu     sync.Mutex
	name   string // of the call; "" when idle
	id     uint64
	ticks  uint64
	moved  time.Time
	memory Memory
	peak   int64 // the greatest seen
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

// beat notes a beat, and gives what there is to say of it where it is the running call's.
func (p *pulse) beat(b wire.Beat) (Progress, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory = Memory(b.Memory)
	p.peak = max(p.peak, b.Memory.Peak)
	if b.Ticks != p.ticks {
		p.ticks, p.moved = b.Ticks, time.Now()
	}
	return Progress{Call: p.name, Phase: b.Phase, Ticks: b.Ticks, Done: b.Done, Total: b.Total, Memory: p.memory}, b.At != 0 && b.At == p.id
}

// still is for how long the call has stood still.
func (p *pulse) still() time.Duration {
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
