package enginepool

import (
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// utilisation averages the utilisation of devices, as the watch reads it.
type utilisation struct {
	quit  chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	sum   float64
	count int
}

// between is the pause between two samples. The driver's own figure covers up to a second.
const between = time.Second

func watchUtilisation(w *device.Watch, uuids []string) *utilisation {
	s := &utilisation{quit: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		tick := time.NewTicker(between)
		defer tick.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-tick.C:
				s.record(w.Status(), uuids)
			}
		}
	}()
	return s
}

func (s *utilisation) record(all []device.Status, uuids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range all {
		if busy := d.Utilisation.GPU; slices.Contains(uuids, d.UUID) && busy.OK {
			s.sum += float64(busy.Value) / 100
			s.count++
		}
	}
}

// mean is the average since the last call; nil if no device reported a figure.
func (s *utilisation) mean() *float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 {
		return nil
	}
	mean := s.sum / float64(s.count)
	s.sum, s.count = 0, 0
	return &mean
}

func (s *utilisation) stop() {
	close(s.quit)
	<-s.ended
}
