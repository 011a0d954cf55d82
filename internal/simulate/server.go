package simulate

import "math"

// nearly is how many tokens may be missing at the end of a turn, by rounding.
const nearly = 1e-3

// row is a turn that an engine decodes. It is void if its flight has another attempt or another engine's life.
type row struct {
	ends    float64 // count of decode steps at which it ends
	rollout int
	attempt int
}

// server is an engine of the simulation. Its rows all advance by one token a step, so that one count of steps says
// where each of them is.
type server struct {
	Model
	id      int
	speed   float64 // of now; 0 = lost
	life    int     // raised when the engine is lost: its caches are void
	now     float64
	steps   float64 // done
	rows    int     // that decode
	read    float64 // tokens that those hold
	used    float64 // tokens of all rows that have room
	stall   float64 // until then it computes prefixes
	joining []row   // whose prefixes are computed until then
	heap    heap[row]
	kept    []keep // caches of waiting episodes, the oldest first
	keeps   float64
	usage   *usage
	flights []flight // all of the simulation's
}

// keep is a cache that may be dropped. It is void once its flight has another stamp.
type keep struct{ rollout, stamp int }

// flight is what the simulation knows about a rollout that has begun.
type flight struct {
	turn     int
	left     int // tokens of the stretch that are still to be generated
	after    int // tokens of the turn after those
	ran      int // tokens of the stretch that ended last
	prefix   int // tokens before those
	attempt  int
	server   int
	life     int
	begun    float64 // count of steps at which its row began
	place    place
	cached   int // tokens, while kept
	computes int // tokens of the prefix, while joining
	stamp    int
}

// place says where a flight's tokens are.
type place int

const (
	away     place = iota // nowhere
	joining               // its prefix is computed
	decoding              // a row
	holding               // it has room while its tool runs
	kept                  // its room is free, its cache is still there
)

func newServer(id int, m Model, u *usage, flights []flight) *server {
	s := &server{Model: m, id: id, speed: m.Speed, usage: u, flights: flights}
	if s.speed == 0 {
		s.speed = 1
	}
	s.heap.less = func(a, b *row) bool {
		return a.ends < b.ends || a.ends == b.ends && a.rollout < b.rollout
	}
	return s
}

// advance lets time pass.
func (s *server) advance(to float64) {
	if to <= s.now {
		return
	}
	from := max(s.now, min(s.stall, to))
	s.usage.add(s.id, s.now, from, prefilling)
	if from < to && s.rows > 0 && s.speed > 0 {
		k := s.Model.steps((to-from)*s.speed, s.rows, s.read)
		s.steps += k
		s.read += k * float64(s.rows)
		s.used += k * float64(s.rows)
		s.usage.add(s.id, from, to, float64(s.rows))
	}
	s.now = to
}

// next is when the engine has something to report: the prefixes are computed, a turn ends, or the cache is full.
func (s *server) next() float64 {
	if s.speed == 0 {
		return math.Inf(1)
	}
	if len(s.joining) > 0 {
		return max(s.stall, s.now)
	}
	if s.rows == 0 {
		return math.Inf(1)
	}
	k := max(s.earliest()-s.steps, 0)
	if room := float64(s.Tokens) - s.used; room < k*float64(s.rows) {
		k = max(room, 0) / float64(s.rows)
	}
	return max(s.stall, s.now) + s.seconds(k, s.rows, s.read)/s.speed
}

// earliest is the step at which the first row ends.
func (s *server) earliest() float64 {
	for len(s.heap.items) > 0 {
		r := s.heap.items[0]
		if f := &s.flights[r.rollout]; f.attempt == r.attempt && f.place == decoding && f.server == s.id {
			return r.ends
		}
		s.heap.pop()
	}
	return math.Inf(1)
}

// full reports whether rows have to be dropped.
func (s *server) full() bool { return s.rows > 0 && s.used > float64(s.Tokens)-nearly/10 }

// join starts the rows whose prefixes are computed.
func (s *server) join() {
	if s.now < s.stall {
		return
	}
	for _, r := range s.joining {
		f := &s.flights[r.rollout]
		if f.attempt != r.attempt || f.place != joining || f.server != s.id {
			continue
		}
		f.place, f.begun = decoding, s.steps
		s.rows++
		s.read += float64(f.prefix)
		s.heap.push(row{s.steps + float64(f.left), r.rollout, r.attempt})
	}
	s.joining = s.joining[:0]
}

// ended returns the next row that has ended, and takes it out.
func (s *server) ended() (rollout int, ok bool) {
	if s.rows == 0 || s.earliest() > s.steps+nearly {
		return 0, false
	}
	r := s.heap.pop()
	f := &s.flights[r.rollout]
	s.drop(f)
	f.prefix += f.left
	f.ran = f.left
	s.used += float64(f.prefix)
	f.left, f.place, f.cached = 0, holding, f.prefix
	return r.rollout, true
}

// start begins a flight's turn, whose first cached tokens are in the cache if the flight is there.
func (s *server) start(i int, f *flight, attempt int) (computed int) {
	have := 0
	if f.server == s.id && f.life == s.life {
		switch f.place {
		case holding:
			have = f.cached
			s.used -= float64(have)
		case kept:
			have = f.cached
			s.keeps -= float64(have)
		}
	}
	f.stamp++
	f.server, f.life, f.attempt, f.place, f.cached = s.id, s.life, attempt, joining, 0
	computed = f.prefix - have
	f.computes = computed
	s.used += float64(f.prefix)
	s.stall = max(s.stall, s.now) + float64(computed)/s.Prefill/s.speed
	s.joining = append(s.joining, row{rollout: i, attempt: attempt})
	s.shed()
	return computed
}

// drop takes a flight's tokens off the engine.
func (s *server) drop(f *flight) (generated int) {
	if f.server != s.id || f.life != s.life {
		return 0
	}
	switch f.place {
	case decoding:
		tokens := float64(f.prefix) + s.steps - f.begun
		s.rows--
		s.read -= tokens
		s.used -= tokens
		generated = min(int(s.steps-f.begun), f.left)
		if s.rows == 0 {
			s.read = 0
		}
	case joining: // an engine does not compute a prefix that no one waits for
		s.used -= float64(f.prefix)
		s.stall = max(s.now, s.stall-float64(f.computes)/s.Prefill/s.speed)
	case holding:
		s.used -= float64(f.cached)
	case kept:
		s.keeps -= float64(f.cached)
	}
	f.place = away
	return generated
}

// keep frees the room of a flight whose tool runs.
func (s *server) keep(i int, f *flight) {
	if f.place != holding || f.server != s.id || f.life != s.life {
		return
	}
	f.place = kept
	f.stamp++
	s.used -= float64(f.cached)
	s.keeps += float64(f.cached)
	s.kept = append(s.kept, keep{i, f.stamp})
}

// shed drops the oldest caches while memory is short.
func (s *server) shed() {
	for len(s.kept) > 0 && s.used+s.keeps > float64(s.Tokens) {
		k := s.kept[0]
		s.kept = s.kept[1:]
		if f := &s.flights[k.rollout]; f.stamp == k.stamp && f.place == kept {
			s.keeps -= float64(f.cached)
			f.place, f.cached = away, 0
		}
	}
}

// cached is how many tokens of a flight's prefix the engine still has.
func (s *server) cached(f *flight) int {
	s.shed()
	if f.server != s.id || f.life != s.life || f.place != holding && f.place != kept {
		return 0
	}
	return f.cached
}

// run changes the engine's speed; 0 loses it.
func (s *server) run(speed float64) {
	if speed == 0 {
		s.life++
		s.rows, s.read, s.used, s.keeps, s.stall = 0, 0, 0, 0, 0
		s.joining, s.kept, s.heap.items = nil, nil, nil
	} else if s.stall > s.now && s.speed > 0 {
		s.stall = s.now + (s.stall-s.now)*s.speed/speed
	}
	s.speed = speed
}

// newest returns the decoding rollouts, the one that began last first.
func (s *server) newest() []row {
	var out []row
	for _, r := range s.heap.items {
		if f := &s.flights[r.rollout]; f.attempt == r.attempt && f.place == decoding && f.server == s.id {
			out = append(out, r)
		}
	}
	return out
}
