package gguf

import (
	"bufio"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

const (
	magic     = "GGUF"
	version   = 3
	alignment = 32 // of each tensor's data, in bytes
)

// Model is what a file describes.
type Model struct {
	Name string
	// Checkpoint holds the weights. Its numbers may still be in their files; an adapter's product is part of them.
	Checkpoint *checkpoint.Checkpoint
	Vocabulary Vocabulary
	Dtype      checkpoint.Dtype // of matrices
}

// tensor is a tensor as the file has it.
type tensor struct {
	checkpoint.Tensor
	name  string
	dtype checkpoint.Dtype
}

func (t tensor) bytes() int64 { return int64(t.Size()) * int64(t.dtype.Size()) }

// Write writes the file, one tensor after the other and each as it is read. The same model gives the same bytes.
func Write(w io.Writer, m Model) error {
	entries, err := m.entries()
	if err != nil {
		return err
	}
	tensors, err := m.tensors()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<18)
	if _, err := buffered.Write(header(entries, tensors)); err != nil {
		return fmt.Errorf("write GGUF header: %w", err)
	}
	for _, t := range tensors {
		if err := t.Write(buffered, t.dtype); err != nil {
			return err
		}
		if _, err := buffered.Write(make([]byte, padding(t.bytes()))); err != nil {
			return fmt.Errorf("write tensor %q: %w", t.name, err)
		}
	}
	return buffered.Flush()
}

// tensors lists the model's tensors, without the value head of a critic.
func (m Model) tensors() ([]tensor, error) {
	shape := m.Checkpoint.Shape
	shape.ValueHead = false
	var out []tensor
	for i := range shape.Tensors() {
		t := tensor{Tensor: m.Checkpoint.Weights[i], dtype: m.Dtype}
		if len(t.Dims) == 1 {
			t.dtype = checkpoint.F32
		}
		var err error
		if t.name, err = rename(t.Name); err != nil {
			return nil, err
		}
		if interleaved(shape, t.Name) {
			if t.Tensor, err = interleave(t.Tensor, shape.HeadDim); err != nil {
				return nil, err
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// interleave returns a matrix of queries or keys with its rows in llama.cpp's order (see rotated).
func interleave(t checkpoint.Tensor, dim int) (checkpoint.Tensor, error) {
	width := t.Dims[1]
	out := checkpoint.Tensor{Name: t.Name, Dims: t.Dims, Data: make([]float32, t.Size())}
	err := t.Read(func(at int, numbers []float32) {
		for len(numbers) > 0 {
			row, column := at/width, at%width
			n := copy(out.Data[theirs(row, dim)*width+column:][:width-column], numbers)
			at, numbers = at+n, numbers[n:]
		}
	})
	return out, err
}

// header returns everything before the data.
func header(entries []entry, tensors []tensor) []byte {
	out := order.AppendUint32([]byte(magic), version)
	out = order.AppendUint64(out, uint64(len(tensors)))
	out = order.AppendUint64(out, uint64(len(entries)))
	for _, e := range entries {
		out = e.append(out)
	}
	at := int64(0)
	for _, t := range tensors {
		out = appendString(out, t.name)
		out = order.AppendUint32(out, uint32(len(t.Dims)))
		for i := range t.Dims {
			out = order.AppendUint64(out, uint64(t.Dims[len(t.Dims)-1-i]))
		}
		out = order.AppendUint32(out, tensorTypes[t.dtype])
		out = order.AppendUint64(out, uint64(at))
		at += t.bytes() + padding(t.bytes())
	}
	return append(out, make([]byte, padding(int64(len(out))))...)
}

// padding is the number of bytes from n to the next multiple of the alignment.
func padding(n int64) int64 { return (alignment - n%alignment) % alignment }
