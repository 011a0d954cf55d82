package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// stored is the place of a tensor's numbers in an open file.
type stored struct {
	file   io.ReaderAt
	offset int64
	dtype  string
	source Source // where the numbers come from instead of file; nil = from file
	delta  *delta // what an adapter adds to the numbers; nil if there is none
}

// Source reads a tensor's numbers from a file of another format.
type Source interface {
	// ReadNumbers fills numbers with those of the tensor from index at on, row by row. Both at and the end of numbers
	// are multiples of 65,536 or the tensor's end.
	ReadNumbers(at int, numbers []float32) error
}

// TensorFrom returns a tensor whose numbers are read when they are needed.
func TensorFrom(name string, dims []int, s Source) Tensor {
	return Tensor{Name: name, Dims: dims, stored: &stored{source: s}}
}

// with returns the place of the same numbers with an adapter's product added.
func (s stored) with(d *delta) *stored {
	s.delta = d
	return &s
}

// pieceNumbers is the number of values that are read at once.
const pieceNumbers = 1 << 16

// piece is the buffer of one reader. All tensors of a model share it.
type piece struct {
	raw     [4 * pieceNumbers]byte
	numbers [pieceNumbers]float32
}

var pieces = sync.Pool{New: func() any { return new(piece) }}

// Read calls take with the tensor's numbers in order, one piece at a time: the index of the first number, and float32
// values that are valid only during the call. It holds at most one piece in memory.
func (t Tensor) Read(take func(at int, numbers []float32)) error {
	if t.stored == nil {
		take(0, t.Data)
		return nil
	}
	size := t.Size()
	p := pieces.Get().(*piece)
	defer pieces.Put(p)
	for at := 0; at < size; at += pieceNumbers {
		n := min(pieceNumbers, size-at)
		numbers := p.numbers[:n]
		if err := t.stored.read(at, numbers, &p.raw); err != nil {
			return fmt.Errorf("read tensor %q: %w", t.Name, err)
		}
		if t.stored.delta != nil {
			t.stored.delta.add(at, numbers)
		}
		take(at, numbers)
	}
	return nil
}

func (s *stored) read(at int, numbers []float32, buffer *[4 * pieceNumbers]byte) error {
	if s.source != nil {
		return s.source.ReadNumbers(at, numbers)
	}
	width := int(dtypeSize[s.dtype])
	raw := buffer[:len(numbers)*width]
	if _, err := s.file.ReadAt(raw, s.offset+int64(at)*int64(width)); err != nil {
		return err
	}
	widen(numbers, s.dtype, raw)
	return nil
}

// load takes the numbers into memory.
func (t *Tensor) load() error {
	if t.stored == nil {
		return nil
	}
	data := make([]float32, t.Size())
	err := t.Read(func(at int, numbers []float32) { copy(data[at:], numbers) })
	t.Data, t.stored = data, nil
	return err
}

// openTensors opens a file of the folder and reads its header. The numbers stay in the file. The caller closes it.
func openTensors(dir, name string) (_ *File, _ io.Closer, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	out, entries, begin, err := readHeader(f, info.Size())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, e := range entries {
		at := stored{file: f, offset: begin + int64(e.Offsets[0]), dtype: e.Dtype}
		out.Tensors = append(out.Tensors, Tensor{Name: e.name, Dims: e.dims, stored: &at})
	}
	return out, f, nil
}

// readHeader reads and checks the header of a file of size bytes. begin is the offset of the data.
func readHeader(r io.ReaderAt, size int64) (f *File, entries []namedEntry, begin int64, err error) {
	if size < 8 {
		return nil, nil, 0, fmt.Errorf("%w: %d bytes are too short for a safetensors header", ErrCorrupt, size)
	}
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, nil, 0, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || n > uint64(size-8) {
		return nil, nil, 0, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrCorrupt, n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, 8, int64(n)), text); err != nil {
		return nil, nil, 0, err
	}
	f = &File{}
	if entries, err = f.header(text); err != nil {
		return nil, nil, 0, err
	}
	begin = 8 + int64(n)
	return f, entries, begin, tile(entries, uint64(size-begin))
}
