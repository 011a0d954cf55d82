package foreign

import "github.com/apache/arrow/go/v17/arrow/memory"

// bounded is an allocator that gives no more than it has left: a buffer says how large it is once it is unpacked.
type bounded struct {
	memory.Allocator
	left int64
	full bool
}

// newBounded returns an allocator for values of most bytes: as they are stored, unpacked and decoded, in buffers that
// double as they grow.
func newBounded(most int64) *bounded {
	const least = 16 << 20
	return &bounded{Allocator: memory.NewGoAllocator(), left: 4*most + least}
}

func (b *bounded) take(size int) {
	if b.left -= int64(size); b.left < 0 {
		b.full = true
		panic(ErrTooLarge)
	}
}

// Allocate implements memory.Allocator.
func (b *bounded) Allocate(size int) []byte {
	b.take(size)
	return b.Allocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (b *bounded) Reallocate(size int, of []byte) []byte {
	b.take(size - len(of))
	return b.Allocator.Reallocate(size, of)
}

// Free implements memory.Allocator.
func (b *bounded) Free(of []byte) { b.left += int64(len(of)) }

// refuse is deferred, and makes ErrTooLarge of the panic or of what the decoder has made of it.
func (b *bounded) refuse(err *error) {
	if b.full {
		_ = recover()
		*err = ErrTooLarge
	}
}
