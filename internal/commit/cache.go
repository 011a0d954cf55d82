package commit

import (
	"bytes"
	"container/list"
	"strings"
	"sync"
)

// Cache keeps objects that a process has verified, so that the process requests each of them from the store only once.
// An entry is identified by the key and the digest of the object together: a caller never gets other bytes than it
// asked for, and an object that was verified under one key proves nothing about another key. The least recently used
// entries are evicted first. A nil Cache keeps nothing. Cache is safe for concurrent use.
type Cache struct {
	limit int64 // bytes

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	recent  list.List // of *cacheEntry, the most recently used first
	stats   CacheStats
}

type cacheKey struct{ key, digest string }

type cacheEntry struct {
	cacheKey
	data []byte // never returned and never changed
}

// CacheStats counts the reads of a cache since it was made, and what it holds.
type CacheStats struct {
	Hits    int64 // reads that needed no request
	Misses  int64 // reads that went to the store
	Objects int
	Bytes   int64
}

// largestShare is the divisor that gives the largest part of the cache that one object may take. A larger object would
// evict most others.
const largestShare = 4

// NewCache returns an empty cache of at most limit bytes of objects; 0 keeps nothing.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, entries: map[cacheKey]*list.Element{}}
}

// get returns a copy of an object's bytes, because decoders keep references into their input and callers change rows.
func (c *Cache) get(key, digest string) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	e, ok := c.entries[cacheKey{key, digest}]
	if !ok {
		c.stats.Misses++
		c.mu.Unlock()
		return nil, false
	}
	c.stats.Hits++
	c.recent.MoveToFront(e)
	data := e.Value.(*cacheEntry).data
	c.mu.Unlock()
	return bytes.Clone(data), true
}

// put keeps a copy of an object. The caller has checked that the bytes have this digest.
func (c *Cache) put(key, digest string, data []byte) {
	size := int64(len(data))
	if c == nil || size > c.limit/largestShare {
		return
	}
	entry := &cacheEntry{cacheKey{key, digest}, bytes.Clone(data)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[entry.cacheKey]; ok {
		c.recent.MoveToFront(e)
		return
	}
	c.entries[entry.cacheKey] = c.recent.PushFront(entry)
	c.stats.Bytes += size
	for c.stats.Bytes > c.limit {
		oldest := c.recent.Remove(c.recent.Back()).(*cacheEntry)
		delete(c.entries, oldest.cacheKey)
		c.stats.Bytes -= int64(len(oldest.data))
	}
}

// forget drops the objects whose keys start with prefix.
func (c *Cache) forget(prefix string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if strings.HasPrefix(key.key, prefix) {
			c.stats.Bytes -= int64(len(e.Value.(*cacheEntry).data))
			c.recent.Remove(e)
			delete(c.entries, key)
		}
	}
}

// Stats returns the counts so far.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Objects = len(c.entries)
	return stats
}
