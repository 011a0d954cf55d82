package checkpoint

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/seed"
)

// InitBFloat16 is Init with bfloat16 weights, as in most published models. It draws the weights while it writes them,
// so a model of billions of parameters takes a few seconds and little memory. Each number is one of 65,536 quantiles of
// the normal distribution, with four numbers per draw. It writes no value head.
func InitBFloat16(dir string, s Shape, seedValue uint64) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.ValueHead {
		return fmt.Errorf("%w: a value head of bfloat16", ErrUnsupported)
	}
	if err := writeInitBFloat16(dir, s, seedValue); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", dir, err)
	}
	return nil
}

func writeInitBFloat16(dir string, s Shape, seedValue uint64) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	config, err := asBFloat16(marshalConfig(s))
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{FileConfig: config, FileGeneration: marshalGeneration(s)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, FileWeights), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 4<<20)
	if err := drawBFloat16(w, s, seedValue); err != nil {
		return err
	}
	return w.Flush()
}

func asBFloat16(config []byte) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(config, &m); err != nil {
		return nil, err
	}
	m["dtype"] = "bfloat16"
	return marshalSorted(m), nil
}

// drawBFloat16 writes the file's header and its tensors.
func drawBFloat16(w io.Writer, s Shape, seedValue uint64) error {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var at uint64
	for _, t := range s.Tensors() {
		end := at + 2*uint64(t.Size())
		header[t.Name] = map[string]any{"dtype": "BF16", "shape": t.Dims, "data_offsets": [2]uint64{at, end}}
		at = end
	}
	head, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)); err != nil {
		return err
	}
	plain, scaled := normals(initStd), normals(initStd/math.Sqrt(2*float64(s.Layers)))
	for _, t := range s.Tensors() {
		table := plain
		switch {
		case len(t.Dims) == 1:
			table = ones()
		case strings.HasSuffix(t.Name, ".o_proj.weight"), strings.HasSuffix(t.Name, ".down_proj.weight"):
			table = scaled
		}
		if err := drawTensor(w, t, table, seedValue); err != nil {
			return err
		}
	}
	return nil
}

func drawTensor(w io.Writer, t Tensor, table *[1 << 16]uint16, seedValue uint64) error {
	r := seed.Rand("checkpoint-init-bfloat16:"+t.Name, seedValue)
	piece := make([]byte, 1<<20)
	for left := 2 * t.Size(); left > 0; left -= len(piece) {
		for i := 0; i < len(piece); i += 8 {
			bits := r.Uint64()
			for k := range 4 {
				binary.LittleEndian.PutUint16(piece[i+2*k:], table[uint16(bits>>(16*k))])
			}
		}
		if _, err := w.Write(piece[:min(left, len(piece))]); err != nil {
			return err
		}
	}
	return nil
}

// normals returns the quantiles (i+½)/65536 of the normal distribution with mean 0, in bfloat16.
func normals(std float64) *[1 << 16]uint16 {
	out := new([1 << 16]uint16)
	for i := range out {
		out[i] = toBFloat16(float32(std * math.Sqrt2 * math.Erfinv((2*float64(i)+1)/(1<<16)-1)))
	}
	return out
}

func ones() *[1 << 16]uint16 {
	out := new([1 << 16]uint16)
	for i := range out {
		out[i] = toBFloat16(1)
	}
	return out
}

// toBFloat16 rounds to nearest, ties to even.
func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
