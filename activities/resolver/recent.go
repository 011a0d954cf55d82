package resolver

import (
	"slices"
	"sync"
)

// Recent holds the most recently used values, up to most: the memory of a worker must not grow with the number of
// runs that it has served. It is safe for concurrent use.
type Recent[K comparable, V any] struct {
	Most int

	mu     sync.Mutex
	order  []K // the latest last; few, so that a search is cheap
	values map[K]V
}

// Get returns the value of a key and makes it with fresh if it is not remembered. Concurrent callers get the same
// value.
func (r *Recent[K, V]) Get(key K, fresh func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.values[key]
	if !ok {
		v = fresh()
	}
	r.keep(key, v)
	return v
}

// find returns the value of a key, if it is remembered.
func (r *Recent[K, V]) find(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.values[key]
	if ok {
		r.keep(key, v)
	}
	return v, ok
}

func (r *Recent[K, V]) put(key K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(key, v)
}

// keep makes a key the latest and forgets the oldest keys beyond most.
func (r *Recent[K, V]) keep(key K, v V) {
	if r.values == nil {
		r.values = map[K]V{}
	}
	if i := slices.Index(r.order, key); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
	r.order, r.values[key] = append(r.order, key), v
	for len(r.order) > max(1, r.Most) {
		delete(r.values, r.order[0])
		r.order = slices.Delete(r.order, 0, 1)
	}
}
