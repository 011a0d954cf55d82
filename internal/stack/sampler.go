package stack

import (
	"os"
	"sync"
	"time"
)

// sampler measures the memory of the whole stack twice a second and keeps each lease's peak.
type sampler struct {
	spawn *spawner

	mu    sync.Mutex
	peaks map[*holder]int64 // bytes
}

const samplePeriod = 500 * time.Millisecond

func newSampler(s *spawner) *sampler { return &sampler{spawn: s, peaks: map[*holder]int64{}} }

// run samples until the process ends. Measuring a large process takes milliseconds: the pause grows with the cost, so
// that sampling stays below 2% of a core.
func (m *sampler) run() {
	for {
		began := time.Now()
		m.sample()
		m.spawn.adopt(false)
		time.Sleep(max(samplePeriod, 50*time.Since(began)))
	}
}

// sample measures the memory of this process, of the commands, and of the descendants of both.
func (m *sampler) sample() {
	roots := []int{os.Getpid()}
	m.mu.Lock()
	for h := range m.peaks {
		if h.pid > 0 {
			roots = append(roots, h.pid)
		}
	}
	m.mu.Unlock()
	now := memoryOf(roots)
	m.mu.Lock()
	defer m.mu.Unlock()
	for h, peak := range m.peaks {
		m.peaks[h] = max(peak, now)
	}
}

func (m *sampler) watch(h *holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peaks[h] = 0
}

func (m *sampler) unwatch(h *holder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.peaks, h)
}

// peak returns a lease's peak, including a fresh sample, and starts from zero if reset is set.
func (m *sampler) peak(h *holder, reset bool) int64 {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.peaks[h]
	if reset && ok {
		m.peaks[h] = 0
	}
	return p
}
