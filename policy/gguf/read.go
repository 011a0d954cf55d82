package gguf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// errUnsupported marks a file that this package cannot read as a policy.
var errUnsupported = errors.New("unsupported GGUF file")

// Bounds of a header. The largest published vocabularies have some 260,000 tokens.
const (
	mostEntries = 1 << 16
	mostTensors = 1 << 16
	mostValues  = 1 << 22 // of an array
	mostText    = 1 << 24 // bytes of a string
	mostHeader  = 1 << 28 // bytes of all entries
	mostHeld    = 1 << 27 // bytes in memory of all entries and names
	valueBytes  = 32      // of a value in an array, besides its text
)

// File is an open file. Its tensors are read when they are needed.
type File struct {
	entries map[string]any // integers as int64, numbers as float64, bool, string, and slices of these
	tensors map[string]stored
	file    *os.File
}

// stored is a tensor of a file.
type stored struct {
	dims   []int // from the slowest to the fastest
	format format
	offset int64
	file   io.ReaderAt
}

// Open reads and checks the header of a file. The caller closes it.
func Open(path string) (_ *File, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read GGUF file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read GGUF file: %w", err)
	}
	out := &File{entries: map[string]any{}, tensors: map[string]stored{}, file: f}
	if err := out.read(f, info.Size()); err != nil {
		return nil, fmt.Errorf("read GGUF file %s: %w", path, err)
	}
	return out, nil
}

// Close closes the file. Tensors cannot be read after that.
func (f *File) Close() error { return f.file.Close() }

// Text returns an entry that is text; ok is false if the file has no such entry.
func (f *File) Text(key string) (text string, ok bool) {
	text, ok = f.entries[key].(string)
	return text, ok
}

// Texts returns an entry that is a list of texts.
func (f *File) Texts(key string) (texts []string, ok bool) { return list[string](f, key) }

// Whole returns an entry that is a whole number.
func (f *File) Whole(key string) (n int64, ok bool) {
	n, ok = f.entries[key].(int64)
	return n, ok
}

// Wholes returns an entry that is a list of whole numbers.
func (f *File) Wholes(key string) (numbers []int64, ok bool) { return list[int64](f, key) }

func list[T any](f *File, key string) (out []T, ok bool) {
	all, ok := f.entries[key].([]any)
	for _, v := range all {
		value, is := v.(T)
		if !is {
			return nil, false
		}
		out = append(out, value)
	}
	return out, ok
}

// Number returns an entry that is a number.
func (f *File) Number(key string) (x float64, ok bool) {
	x, ok = f.entries[key].(float64)
	return x, ok
}

func (f *File) read(r io.ReaderAt, size int64) error {
	h := &headerReader{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, min(size, mostHeader)), 1<<16)}
	var start [24]byte
	h.bytes(start[:])
	if h.err != nil {
		return fmt.Errorf("%w: %w", checkpoint.ErrCorrupt, h.err)
	}
	if string(start[:4]) != magic {
		return fmt.Errorf("%w: it does not begin with %s", errUnsupported, magic)
	}
	if v := order.Uint32(start[4:]); v != 2 && v != version {
		return fmt.Errorf("%w: it has version %d, want 2 or %d", errUnsupported, v, version)
	}
	tensors, entries := order.Uint64(start[8:]), order.Uint64(start[16:])
	if tensors > mostTensors || entries > mostEntries {
		return fmt.Errorf("%w: it has %d tensors and %d entries, more than %d", checkpoint.ErrCorrupt, tensors, entries,
			mostTensors)
	}
	for range entries {
		h.hold(valueBytes)
		key := h.text()
		value := h.value(h.uint32())
		if h.err != nil {
			return fmt.Errorf("%w: entry %q: %w", checkpoint.ErrCorrupt, key, h.err)
		}
		f.entries[key] = value
	}
	for range tensors {
		h.hold(4 * valueBytes)
		name := h.text()
		t := h.tensor()
		if h.err != nil {
			return fmt.Errorf("%w: tensor %q: %w", checkpoint.ErrCorrupt, name, h.err)
		}
		f.tensors[name] = t
	}
	return f.place(r, size, h.at)
}

// place finds the data of each tensor and checks that it lies in the file.
func (f *File) place(r io.ReaderAt, size, header int64) error {
	align := int64(alignment)
	if n, ok := f.Whole("general.alignment"); ok {
		if n < 1 || n > 1<<20 {
			return fmt.Errorf("%w: general.alignment is %d", checkpoint.ErrCorrupt, n)
		}
		align = n
	}
	begin := (header + align - 1) / align * align
	for name, t := range f.tensors {
		bytes := int64(t.format.bytes)
		for i, d := range t.dims {
			if i == len(t.dims)-1 {
				d /= t.format.values
			}
			bytes *= int64(d)
		}
		if t.offset < 0 || t.offset > size-begin || bytes > size-begin-t.offset {
			return fmt.Errorf("%w: tensor %q ends after the file", checkpoint.ErrCorrupt, name)
		}
		t.offset, t.file = t.offset+begin, r
		f.tensors[name] = t
	}
	return nil
}

// headerReader reads a header; after an error it returns zero values.
type headerReader struct {
	r    *bufio.Reader
	at   int64
	held uint64 // bytes of what is kept
	err  error
}

// hold counts n bytes that are kept.
func (h *headerReader) hold(n uint64) {
	if h.held += n; h.held > mostHeld && h.err == nil {
		h.err = fmt.Errorf("the header takes more than %d bytes in memory", mostHeld)
	}
}

func (h *headerReader) bytes(to []byte) {
	if h.err != nil {
		return
	}
	n, err := io.ReadFull(h.r, to)
	h.at += int64(n)
	if err != nil {
		h.err = errors.New("the header ends early")
	}
}

func (h *headerReader) uint32() uint32 {
	var b [4]byte
	h.bytes(b[:])
	return order.Uint32(b[:])
}

func (h *headerReader) uint64() uint64 {
	var b [8]byte
	h.bytes(b[:])
	return order.Uint64(b[:])
}

func (h *headerReader) text() string {
	n := h.uint64()
	if h.err == nil && n > mostText {
		h.err = fmt.Errorf("a text of %d bytes is longer than %d", n, mostText)
	}
	if h.err == nil {
		h.hold(n)
	}
	if h.err != nil {
		return ""
	}
	b := make([]byte, n)
	h.bytes(b)
	return string(b)
}

// scalars reads the types of single values, by their numbers.
var scalars = map[uint32]struct {
	bytes int
	of    func(b []byte) any
}{
	0:           {1, func(b []byte) any { return int64(b[0]) }},
	1:           {1, func(b []byte) any { return int64(int8(b[0])) }},
	2:           {2, func(b []byte) any { return int64(order.Uint16(b)) }},
	3:           {2, func(b []byte) any { return int64(int16(order.Uint16(b))) }},
	typeUint32:  {4, func(b []byte) any { return int64(order.Uint32(b)) }},
	typeInt32:   {4, func(b []byte) any { return int64(int32(order.Uint32(b))) }},
	typeFloat32: {4, func(b []byte) any { return shortest(math.Float32frombits(order.Uint32(b))) }},
	typeBool:    {1, func(b []byte) any { return b[0] != 0 }},
	10:          {8, func(b []byte) any { return int64(order.Uint64(b)) }},
	11:          {8, func(b []byte) any { return int64(order.Uint64(b)) }},
	12:          {8, func(b []byte) any { return math.Float64frombits(order.Uint64(b)) }},
}

func (h *headerReader) value(kind uint32) any {
	switch kind {
	case typeString:
		return h.text()
	case typeArray:
		return h.array()
	}
	s, ok := scalars[kind]
	if !ok && h.err == nil {
		h.err = fmt.Errorf("there is no type %d", kind)
	}
	if h.err != nil {
		return nil
	}
	var b [8]byte
	h.bytes(b[:s.bytes])
	return s.of(b[:])
}

func (h *headerReader) array() []any {
	kind, n := h.uint32(), h.uint64()
	if h.err == nil && (n > mostValues || kind == typeArray) {
		h.err = fmt.Errorf("an array of %d values of type %d is not supported", n, kind)
	}
	if h.err == nil {
		h.hold(n * valueBytes)
	}
	var out []any
	for range n {
		if h.err != nil {
			return nil
		}
		if out == nil {
			out = make([]any, 0, n)
		}
		out = append(out, h.value(kind))
	}
	return out
}

// tensor reads a tensor's place; its offset counts from the beginning of the data.
func (h *headerReader) tensor() stored {
	n := h.uint32()
	if h.err == nil && (n < 1 || n > 4) {
		h.err = fmt.Errorf("it has %d dimensions", n)
	}
	if h.err != nil {
		return stored{}
	}
	t := stored{dims: make([]int, n)}
	product := uint64(1)
	for i := range t.dims {
		d := h.uint64()
		if h.err == nil && (d < 1 || d > math.MaxInt64/8/product) {
			h.err = fmt.Errorf("dimension %d is %d", i, d)
		}
		if h.err != nil {
			return stored{}
		}
		product *= d
		t.dims[i] = int(d)
	}
	slices.Reverse(t.dims)
	kind := h.uint32()
	t.offset = int64(h.uint64())
	var ok bool
	if t.format, ok = formats[kind]; !ok && h.err == nil {
		h.err = fmt.Errorf("format %d is not supported; supported are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K",
			kind)
	} else if ok && t.dims[n-1]%t.format.values != 0 {
		h.err = fmt.Errorf("rows of %d values are no multiple of the %d in a block of %s", t.dims[n-1],
			t.format.values, t.format.name)
	}
	return t
}

// ReadNumbers implements checkpoint.Source.
func (t stored) ReadNumbers(at int, numbers []float32) error {
	f := t.format
	raw := make([]byte, len(numbers)/f.values*f.bytes)
	if _, err := t.file.ReadAt(raw, t.offset+int64(at/f.values)*int64(f.bytes)); err != nil {
		return err
	}
	for i := 0; i < len(numbers); i += f.values {
		f.read(numbers[i:i+f.values], raw[i/f.values*f.bytes:])
	}
	return nil
}

// rotated reads a matrix of queries or keys whose rows lie as llama.cpp has them for this architecture: it turns
// dimensions 2i and 2i+1 of a head together, where a checkpoint's are i and i+dim/2.
type rotated struct {
	stored
	dim int // of a head
}

// ReadNumbers implements checkpoint.Source.
func (t rotated) ReadNumbers(at int, numbers []float32) error {
	width := t.dims[len(t.dims)-1]
	for len(numbers) > 0 {
		row, column := at/width, at%width
		n := min(width-column, len(numbers))
		if err := t.stored.ReadNumbers(theirs(row, t.dim)*width+column, numbers[:n]); err != nil {
			return err
		}
		at, numbers = at+n, numbers[n:]
	}
	return nil
}

// theirs returns where llama.cpp has a row of queries or keys.
func theirs(row, dim int) int {
	head, i := row/dim, row%dim
	return head*dim + i%(dim/2)*2 + i/(dim/2)
}
