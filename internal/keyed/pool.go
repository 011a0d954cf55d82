// Package keyed holds what workers keep of episodes between their calls: for each key a seat, with an interpreter or a
// connection in it. The number of seats is bounded, and one that is idle for long is given up.
package keyed

import (
	"context"
	"sync"
	"time"
)

// Pool holds seats of T by their keys. Its owner sets the exported fields before the first use. It is safe for
// concurrent use.
type Pool[T any] struct {
	Most   int           // seats at once
	Idle   time.Duration // idle time after which a seat is given up
	End    func(*T)      // ends what a seat holds, when no one has its turn
	Full   error         // what Enter returns if all seats are held; nil: it gives up the one idle longest, or waits
	Closed error         // what Enter returns after Close

	mu     sync.Mutex
	seats  map[string]*Seat[T]
	freed  chan struct{} // closed and replaced when a turn or a seat is given back
	closed bool
}

// Seat is the place of one key. Who has its turn may use Held.
type Seat[T any] struct {
	Held T

	key string
	// The pool's lock guards these:
	taken bool // somebody has the turn
	used  time.Time
	timer *time.Timer // runs while no one has the turn
}

// Enter returns the seat of a key, which it makes if there is none, and takes its turn. Leave gives the turn back.
func (p *Pool[T]) Enter(ctx context.Context, key string) (*Seat[T], error) {
	for {
		var seat, victim *Seat[T]
		var refused error
		err := p.await(ctx, func() bool {
			seat, victim, refused = p.find(key)
			return seat != nil || victim != nil || refused != nil
		})
		switch {
		case err != nil:
			return nil, err
		case victim != nil:
			p.forget(victim)
			continue
		}
		return seat, refused
	}
}

// find takes the turn of a key's seat, or of a victim that must make room for it first, or of none: then the caller
// waits. It needs the lock.
func (p *Pool[T]) find(key string) (seat, victim *Seat[T], err error) {
	seat = p.seats[key]
	switch {
	case p.closed:
		return nil, nil, p.Closed
	case seat != nil && seat.taken:
		return nil, nil, nil
	case seat != nil:
		seat.take()
		return seat, nil, nil
	case len(p.seats) < p.Most:
		seat = &Seat[T]{key: key, taken: true}
		p.seats[key] = seat
		return seat, nil, nil
	case p.Full != nil:
		return nil, nil, p.Full
	}
	for _, s := range p.seats {
		if !s.taken && (victim == nil || s.used.Before(victim.used)) {
			victim = s
		}
	}
	if victim != nil {
		victim.take()
	}
	return nil, victim, nil
}

func (s *Seat[T]) take() {
	s.taken = true
	s.timer.Stop()
}

// await calls try, with the lock, until it succeeds: again whenever a turn or a seat has been given back.
func (p *Pool[T]) await(ctx context.Context, try func() bool) error {
	for {
		p.mu.Lock()
		if p.seats == nil {
			p.seats, p.freed = map[string]*Seat[T]{}, make(chan struct{})
		}
		done, freed := try(), p.freed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// free wakes those that wait. It needs the lock.
func (p *Pool[T]) free() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// Leave gives the turn back.
func (p *Pool[T]) Leave(s *Seat[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.taken, s.used = false, time.Now()
	s.timer = time.AfterFunc(p.Idle, func() { p.expire(s) })
	p.free()
}

// expire gives up a seat that has been idle for long. Somebody may have come when the timer had ended already.
func (p *Pool[T]) expire(s *Seat[T]) {
	p.mu.Lock()
	idle := !s.taken && p.seats[s.key] == s && time.Since(s.used) >= p.Idle
	s.taken = s.taken || idle
	p.mu.Unlock()
	if idle {
		p.forget(s)
	}
}

// forget ends what a seat holds and gives the seat up. It needs the turn.
func (p *Pool[T]) forget(s *Seat[T]) {
	p.End(&s.Held)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seats, s.key)
	p.free()
}

// Forget gives up the seat of a key, if there is one, when no one has its turn.
func (p *Pool[T]) Forget(ctx context.Context, key string) error {
	var seat *Seat[T]
	err := p.await(ctx, func() bool {
		seat = p.seats[key]
		if seat == nil || seat.taken {
			return seat == nil
		}
		seat.take()
		return true
	})
	if err == nil && seat != nil {
		p.forget(seat)
	}
	return err
}

// Len is the number of seats.
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seats)
}

// Close gives up every seat, each when no one has its turn. Enter fails from now on. A second call does nothing.
func (p *Pool[T]) Close() {
	var keys []string
	_ = p.await(context.Background(), func() bool {
		p.closed = true
		for key := range p.seats {
			keys = append(keys, key)
		}
		p.free()
		return true
	})
	var ends sync.WaitGroup
	for _, key := range keys {
		ends.Go(func() { _ = p.Forget(context.Background(), key) })
	}
	ends.Wait()
}
