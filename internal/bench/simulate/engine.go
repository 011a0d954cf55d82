package simulate

import "math"

// model says how fast an engine is and what it holds.
type model struct {
	tokens  int     // of its cache
	rows    int     // that it decodes at once, at most
	base    float64 // seconds of a decode step
	row     float64 // for each row
	context float64 // for each token that the rows hold
	prefill float64 // tokens a second
}

// seconds is how long k steps of n rows take that hold read tokens at the beginning. Each step adds n
// tokens, so that the sum over the steps is a quadratic in k.
func (m *model) seconds(k float64, n int, read float64) float64 {
	return k*(m.base+m.row*float64(n)+m.context*read) + m.context*float64(n)*k*k/2
}

// steps is the inverse of seconds.
func (m *model) steps(seconds float64, n int, read float64) float64 {
	a, b := m.base+m.row*float64(n)+m.context*read, 2*m.context*float64(n)
	return 2 * seconds / (a + math.Sqrt(a*a+b*seconds))
}

// nearly is how many tokens may be missing at the end of a turn, by rounding.
const nearly = 1e-3

// row is a turn that an engine decodes. It is void if its flight has another attempt or another engine.
type row struct {
	ends             float64 // count of decode steps at which it ends
	rollout, attempt int
}

// keep is a cache that may be dropped. It is void once its flight has another stamp.
type keep struct{ rollout, stamp int }

// engine is an engine of the simulation. Its rows all advance by one token a step, so that one count of steps says
// where each of them is.
type engine struct {
	model
	id      int
	now     float64
	wakes   float64 // when it has something to report
	done    float64 // decode steps
	active  int     // rows that decode
	read    float64 // tokens that those hold
	used    float64 // tokens of all rows that have room
	stall   float64 // until then it computes prefixes
	joining []row   // whose prefixes are computed until then
	heap    queue[row]
	kept    []keep // caches of waiting episodes, the oldest first
	keeps   float64
	flights []flight
}

// flight is what the simulation knows about a rollout that has begun.
type flight struct {
	turn     int
	left     int // tokens of the stretch that are still to be generated
	after    int // tokens of the turn after those
	ran      int // tokens of the stretch that ended last
	prefix   int // tokens before those
	attempt  int
	engine   int
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

func newEngine(id int, m model, flights []flight) *engine {
	return &engine{model: m, id: id, wakes: math.Inf(1), flights: flights,
		heap: queue[row]{less: func(a, b *row) bool {
			return a.ends < b.ends || a.ends == b.ends && a.rollout < b.rollout
		}}}
}

// advance lets time pass.
func (e *engine) advance(to float64) {
	if to <= e.now {
		return
	}
	from := max(e.now, min(e.stall, to))
	if from < to && e.active > 0 {
		k := e.steps(to-from, e.active, e.read)
		e.done += k
		e.read += k * float64(e.active)
		e.used += k * float64(e.active)
	}
	e.now = to
}

// next is when the engine has something to report: the prefixes are computed, a turn ends, or the cache is full.
func (e *engine) next() float64 {
	switch {
	case len(e.joining) > 0:
		return max(e.stall, e.now)
	case e.active == 0:
		return math.Inf(1)
	}
	k := max(e.earliest()-e.done, 0)
	if room := float64(e.tokens) - e.used; room < k*float64(e.active) {
		k = max(room, 0) / float64(e.active)
	}
	return max(e.stall, e.now) + e.seconds(k, e.active, e.read)
}

// decodes reports whether a row is not void.
func (e *engine) decodes(r row) bool {
	f := &e.flights[r.rollout]
	return f.attempt == r.attempt && f.place == decoding && f.engine == e.id
}

// earliest is the step at which the first row ends.
func (e *engine) earliest() float64 {
	for len(e.heap.items) > 0 {
		if r := e.heap.items[0]; e.decodes(r) {
			return r.ends
		}
		e.heap.pop()
	}
	return math.Inf(1)
}

// full reports whether rows have to be dropped.
func (e *engine) full() bool { return e.active > 0 && e.used > float64(e.tokens)-nearly/10 }

// join starts the rows whose prefixes are computed.
func (e *engine) join() {
	if e.now < e.stall {
		return
	}
	for _, r := range e.joining {
		f := &e.flights[r.rollout]
		if f.attempt != r.attempt || f.place != joining || f.engine != e.id {
			continue
		}
		f.place, f.begun = decoding, e.done
		e.active++
		e.read += float64(f.prefix)
		e.heap.push(row{e.done + float64(f.left), r.rollout, r.attempt})
	}
	e.joining = e.joining[:0]
}

// ended returns the next row that has ended, and takes it out.
func (e *engine) ended() (rollout int, ok bool) {
	if e.active == 0 || e.earliest() > e.done+nearly {
		return 0, false
	}
	r := e.heap.pop()
	f := &e.flights[r.rollout]
	e.drop(f)
	f.prefix += f.left
	f.ran = f.left
	e.used += float64(f.prefix)
	f.left, f.place, f.cached = 0, holding, f.prefix
	return r.rollout, true
}

// has reports whether a flight's tokens are on the engine.
func (e *engine) has(f *flight) bool { return f.engine == e.id }

// start begins a flight's turn, whose first cached tokens are in the cache if the flight is there.
func (e *engine) start(i, attempt int) {
	f, have := &e.flights[i], 0
	if e.has(f) && (f.place == holding || f.place == kept) {
		have = f.cached
		e.drop(f)
	}
	f.stamp++
	f.engine, f.attempt, f.place, f.cached = e.id, attempt, joining, 0
	f.computes = f.prefix - have
	e.used += float64(f.prefix)
	e.stall = max(e.stall, e.now) + float64(f.computes)/e.prefill
	e.joining = append(e.joining, row{rollout: i, attempt: attempt})
	e.shed()
}

// drop takes a flight's tokens off the engine.
func (e *engine) drop(f *flight) (generated int) {
	if !e.has(f) {
		return 0
	}
	switch f.place {
	case decoding:
		tokens := float64(f.prefix) + e.done - f.begun
		e.active--
		e.read -= tokens
		e.used -= tokens
		generated = min(int(e.done-f.begun), f.left)
		if e.active == 0 {
			e.read = 0
		}
	case joining: // an engine does not compute a prefix that no one waits for
		e.used -= float64(f.prefix)
		e.stall = max(e.now, e.stall-float64(f.computes)/e.prefill)
	case holding:
		e.used -= float64(f.cached)
	case kept:
		e.keeps -= float64(f.cached)
	}
	f.place = away
	return generated
}

// keep frees the room of a flight whose tool runs.
func (e *engine) keep(i int) {
	f := &e.flights[i]
	if f.place != holding || !e.has(f) {
		return
	}
	f.place = kept
	f.stamp++
	e.used -= float64(f.cached)
	e.keeps += float64(f.cached)
	e.kept = append(e.kept, keep{i, f.stamp})
}

// shed drops the oldest caches while memory is short.
func (e *engine) shed() {
	for len(e.kept) > 0 && e.used+e.keeps > float64(e.tokens) {
		k := e.kept[0]
		e.kept = e.kept[1:]
		if f := &e.flights[k.rollout]; f.stamp == k.stamp && f.place == kept {
			e.keeps -= float64(f.cached)
			f.place, f.cached = away, 0
		}
	}
}

// caches is how many tokens of a flight's prefix the engine still has.
func (e *engine) caches(f *flight) int {
	e.shed()
	if !e.has(f) || f.place != holding && f.place != kept {
		return 0
	}
	return f.cached
}

// decoded returns the rows that decode.
func (e *engine) decoded() (out []row) {
	for _, r := range e.heap.items {
		if e.decodes(r) {
			out = append(out, r)
		}
	}
	return out
}
