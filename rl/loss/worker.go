package loss

// The buffers of a worker, and how a row's tokens under the mask are gathered into them.

// segment is a run of tokens under the mask.
type segment struct{ from, n int }

// worker is the scratch space of one goroutine.
type worker struct {
	block    Block // its slices are cut from the buffers for each block
	buffers  [11][BlockSize]float64
	marks    [BlockSize]int32
	segments []segment
	tokens   int // of the segments
}

// What each buffer holds.
const (
	bufLogProbs = iota
	bufOld
	bufAdvantages
	bufLogRatio
	bufRatio
	bufLoss
	bufCoef
	bufScratch
	bufOther // rollout or reference log-probabilities, entropies
	bufDelta
	bufGradient
)

func newWorker() *worker { return &worker{segments: make([]segment, 0, BlockSize)} }

func (w *worker) buffer(k int) []float64 { return w.buffers[k][:w.tokens] }

// count returns the number of tokens under a mask, and false if the mask holds anything but 0 and 1. With runs it also
// keeps all of the row's segments, so that the mask need not be read again.
func (w *worker) count(mask []int32, runs bool) (tokens int, ok bool) {
	if !runs {
		sum, or := maskLoop(mask)
		return int(sum), or&^1 == 0
	}
	w.segments = w.segments[:0]
	for t := 0; t < len(mask); {
		from := t + runLoop(mask[t:], 0)
		n := runLoop(mask[from:], 1)
		if n == 0 {
			return tokens, from == len(mask)
		}
		w.segments = append(w.segments, segment{from, n})
		tokens, t = tokens+n, from+n
	}
	return tokens, true
}

// next finds the next block's tokens from position t on and returns where it ended.
func (w *worker) next(mask []int32, t int) int {
	w.segments, w.tokens = w.segments[:0], 0
	for t < len(mask) && w.tokens < BlockSize {
		t += runLoop(mask[t:], 0)
		n := runLoop(mask[t:min(len(mask), t+BlockSize-w.tokens)], 1)
		if n > 0 {
			w.segments = append(w.segments, segment{t, n})
			w.tokens += n
			t += n
		}
	}
	return t
}

// nextWhole is next for a row whose tokens are all under the mask.
func (w *worker) nextWhole(mask []int32, t int) int {
	n := min(BlockSize, len(mask)-t)
	w.segments, w.tokens = append(w.segments[:0], segment{t, n}), n
	return t + n
}

// gather copies the block's tokens into a buffer.
func gather[T Float](w *worker, buffer int, values []T) []float64 {
	dst, k := w.buffer(buffer), 0
	for _, s := range w.segments {
		widenLoop(dst[k:k+s.n], values[s.from:s.from+s.n])
		k += s.n
	}
	return dst
}
