package devicetest

import (
	"sync"
	"time"
)

// Clock does not advance until a test moves it.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	waiting map[chan time.Time]time.Time
}

// NewClock returns a clock that starts on a fixed day.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), waiting: map[chan time.Time]time.Time{}}
}

// Now implements device.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After implements device.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	c.waiting[ch] = c.now.Add(d)
	return ch
}

// Advance moves the clock and wakes the waiters whose time has come.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for ch, at := range c.waiting {
		if !at.After(c.now) {
			ch <- c.now
			delete(c.waiting, ch)
		}
	}
}

// Waiting counts the waiters that wait no longer than d.
func (c *Clock) Waiting(d time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, at := range c.waiting {
		if !at.After(c.now.Add(d)) {
			n++
		}
	}
	return n
}
