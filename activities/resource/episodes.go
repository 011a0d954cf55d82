package resource

import (
	"container/list"
	"sync"

	"github.com/ropewalk/ropewalk/rollout"
)

// EpisodeBytes bounds the memory of the episodes that a worker holds between the turns of its shards.
const EpisodeBytes = 256 << 20

// Episodes keeps the episodes of shards between their turns, each under the digest of the manifest that committed their
// state. It is a cache of the record: missing episodes are rebuilt from committed rows, with the same result.
// Episodes have one owner: take removes them, and the caller that changed and committed them puts them back under the
// new manifest. A nil *Episodes is empty.
type Episodes struct {
	mu     sync.Mutex
	most   int64 // maximum bytes
	bytes  int64
	recent list.List // elements are *heldShard, the latest in front
	shards map[string]*list.Element
}

// heldShard is one shard's episodes.
type heldShard struct {
	digest   string
	bytes    int64
	episodes []*rollout.Episode
}

// NewEpisodes makes an empty cache of at most the given bytes.
func NewEpisodes(most int64) *Episodes {
	return &Episodes{most: most, shards: map[string]*list.Element{}}
}

// Take removes and returns the episodes as of the manifest with the digest, or nil.
func (h *Episodes) Take(digest string) []*rollout.Episode {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.shards[digest]
	if !ok {
		return nil
	}
	return h.drop(at)
}

// Put keeps episodes under the digest of the manifest that has committed their state. It makes room by removing the
// least recently put episodes.
func (h *Episodes) Put(digest string, episodes []*rollout.Episode) {
	if h == nil {
		return
	}
	s := &heldShard{digest: digest, episodes: episodes}
	for _, e := range episodes {
		s.bytes += e.Size()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, ok := h.shards[digest]; ok {
		h.drop(before)
	}
	if s.bytes > h.most {
		return
	}
	h.shards[digest] = h.recent.PushFront(s)
	h.bytes += s.bytes
	for h.bytes > h.most {
		h.drop(h.recent.Back())
	}
}

func (h *Episodes) drop(at *list.Element) []*rollout.Episode {
	s := h.recent.Remove(at).(*heldShard)
	delete(h.shards, s.digest)
	h.bytes -= s.bytes
	return s.episodes
}
