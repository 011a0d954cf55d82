package simulate

import "slices"

// Service is how tool calls reach their executors, as rStar2's environment service does it: calls wait in one queue;
// each sender takes up to Batch of them at once and is busy for Send seconds; a node runs each call on one of its
// executors, or queues it. The zero value runs every call at once.
type Service struct {
	Senders   int     `yaml:"senders"`
	Batch     int     `yaml:"batch"`
	Send      float64 `yaml:"send"` // seconds
	Nodes     int     `yaml:"nodes"`
	Executors int     `yaml:"executors"` // of each node
}

// call is a tool call, or the verification of an answer.
type call struct {
	rollout, attempt int
	tool             float64 // seconds that it takes on an executor
	at               float64 // when it was dispatched
	verify           bool
}

// tools runs calls.
type tools struct {
	Service
	queue   []call
	idle    int // senders
	free    []int
	waiting [][]call // per node
	due     heap[due]
	count   int
	latency []float32
}

// due is something that happens to calls: a batch arrives, or a call is answered.
type due struct {
	at    float64
	order int
	batch []call // nil for an answer
	call  call
	node  int
}

func newTools(s Service) *tools {
	t := &tools{Service: s, idle: s.Senders}
	for range s.Nodes {
		t.free = append(t.free, s.Executors)
	}
	t.waiting = make([][]call, s.Nodes)
	t.due.less = func(a, b *due) bool { return a.at < b.at || a.at == b.at && a.order < b.order }
	return t
}

func (t *tools) plan(d due) {
	t.count++
	d.order = t.count
	t.due.push(d)
}

// dispatch sends a call.
func (t *tools) dispatch(now float64, c call) {
	c.at = now
	if t.Senders == 0 {
		t.plan(due{at: now + c.tool, call: c})
		return
	}
	t.queue = append(t.queue, c)
}

// send lets idle senders take what is queued. It is called after all calls of a moment have been dispatched.
func (t *tools) send(now float64) {
	for t.idle > 0 && len(t.queue) > 0 {
		n := min(t.Batch, len(t.queue))
		t.idle--
		t.plan(due{at: now + t.Send, batch: slices.Clone(t.queue[:n])})
		t.queue = t.queue[n:]
	}
}

// next is when something happens.
func (t *tools) next() (float64, bool) {
	if len(t.due.items) == 0 {
		return 0, false
	}
	return t.due.items[0].at, true
}

// answered returns a call that is answered now.
func (t *tools) answered(now float64) (call, bool) {
	for len(t.due.items) > 0 && t.due.items[0].at <= now {
		d := t.due.pop()
		if d.batch != nil {
			t.idle++
			for _, c := range d.batch {
				t.arrive(now, c)
			}
			continue
		}
		if t.Senders > 0 {
			t.release(now, d.node)
		}
		t.latency = append(t.latency, float32(now-d.call.at))
		return d.call, true
	}
	return call{}, false
}

// arrive gives a call to the node with the most free executors, or the shortest queue.
func (t *tools) arrive(now float64, c call) {
	best := 0
	for n := range t.free {
		if t.free[n]-len(t.waiting[n]) > t.free[best]-len(t.waiting[best]) {
			best = n
		}
	}
	if t.free[best] == 0 {
		t.waiting[best] = append(t.waiting[best], c)
		return
	}
	t.free[best]--
	t.plan(due{at: now + c.tool, call: c, node: best})
}

// release frees an executor, and starts the call that waits for it.
func (t *tools) release(now float64, node int) {
	if len(t.waiting[node]) == 0 {
		t.free[node]++
		return
	}
	c := t.waiting[node][0]
	t.waiting[node] = t.waiting[node][1:]
	t.plan(due{at: now + c.tool, call: c, node: node})
}
