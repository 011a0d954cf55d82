package servers

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync"
)

// finishedBytes bounds the responses that are kept for a caller whose request has failed.
const finishedBytes = 64 << 20

// rowKey identifies a row and the version that it is asked of.
type rowKey [sha256.Size]byte

func (r row) key(digest string) rowKey {
	b := append([]byte(digest), 0)
	for _, n := range []uint64{uint64(len(r.prefix)), uint64(len(r.stop)), r.stream, uint64(r.maxTokens),
		math.Float64bits(r.temperature), uint64(r.cut.TopK), math.Float64bits(r.cut.TopP),
		math.Float64bits(r.cut.MinP), uint64(r.top), uint64(r.topTokens)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	for _, ids := range [][]int32{r.prefix, r.stop} {
		for _, id := range ids {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	return sha256.Sum256(b)
}

// finished holds responses of requests that are not answered yet, or have failed because of other rows; and beginnings
// of responses (without a finish) whose servers were lost.
type finished struct {
	most, bytes int

	mu   sync.Mutex
	rows map[rowKey]response
}

func (r response) bytes() int {
	n := len(rowKey{}) + 128 + 12*len(r.tokens)
	for _, top := range r.tops {
		n += 24 + 4*len(top)
	}
	return n
}

// get returns what is kept for a row: a response, the beginning of one, or the zero response.
func (f *finished) get(k rowKey) response {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows[k]
}

// put keeps a response in the place of its beginning, if there is room.
func (f *finished) put(k rowKey, r response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := 0
	if old, there := f.rows[k]; there {
		before = old.bytes()
	}
	if f.bytes+r.bytes()-before > f.most {
		return
	}
	if f.rows == nil {
		f.rows = map[rowKey]response{}
	}
	f.rows[k] = r
	f.bytes += r.bytes() - before
}

func (f *finished) drop(k rowKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.rows[k]; ok {
		f.bytes -= r.bytes()
		delete(f.rows, k)
	}
}

func (f *finished) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows, f.bytes = nil, 0
}
