package schema

// mostSpares is how many of a kind are kept between files. More encodings at once make their own.
const mostSpares = 4

// spares keeps buffers between files. Unlike a sync.Pool it keeps them over a garbage collection, since getting and
// clearing their memory again takes a fifth of the time of writing a file.
type spares[T any] struct {
	create func() T
	kept   chan T
}

func newSpares[T any](create func() T) spares[T] {
	return spares[T]{create, make(chan T, mostSpares)}
}

func (s spares[T]) get() T {
	select {
	case one := <-s.kept:
		return one
	default:
		return s.create()
	}
}

func (s spares[T]) put(one T) {
	select {
	case s.kept <- one:
	default:
	}
}
