package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/cause"
)

// HoldsWeights reports whether a file with that name holds tensors that the weights digest covers: those of the model,
// a LoRA adapter or a critic's value head. Training state is not covered.
func HoldsWeights(name string) bool {
	return IsWeights(name) && name != FileIndex || name == FileAdapter || name == FileValueHead
}

// WeightsDigest identifies the weights in the folder dir, independent of the files' names and of how the weights are
// split into files. Two checkpoints with the same weights have the same weights digest, even if their training state
// differs.
//
// It is the hexadecimal SHA-256 of one line per tensor, sorted bytewise: "NAME DTYPE DIMS SHA256\n". NAME is the
// tensor's in double quotes, DTYPE as safetensors spells it, DIMS the sizes in decimal with commas between them
// (nothing for a scalar), and SHA256 that of the tensor's bytes, hexadecimal.
func WeightsDigest(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("digest weights of %s: %w", dir, cause.Of(err))
	}
	var lines []string
	for _, e := range entries {
		if !HoldsWeights(e.Name()) {
			continue
		}
		more, err := fileLines(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", fmt.Errorf("digest weights of %s: %s: %w", dir, e.Name(), err)
		}
		lines = append(lines, more...)
	}
	return WeightsOf(lines), nil
}

// WeightsOf returns the weights digest for the lines of all files.
func WeightsOf(lines []string) string {
	lines = slices.Sorted(slices.Values(lines))
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

func fileLines(path string) (lines []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return TensorLines(bufio.NewReaderSize(f, 1<<18), info.Size())
}

// TensorLines reads a safetensors file of that many bytes and returns the lines of its tensors; no tensor is held in
// memory.
func TensorLines(r io.Reader, size int64) ([]string, error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("%w: read the header's length: %w", ErrCorrupt, err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || size < 8 || n > uint64(size-8) {
		return nil, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrCorrupt, n, size)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("%w: read the header: %w", ErrCorrupt, err)
	}
	entries, err := (&File{}).header(header)
	if err != nil {
		return nil, err
	}
	if err := tile(entries, uint64(size-8)-n); err != nil {
		return nil, err
	}
	lines := make([]string, len(entries))
	for i, e := range entries { // in the order of their data
		sum := sha256.New()
		if _, err := io.CopyN(sum, r, int64(e.Offsets[1]-e.Offsets[0])); err != nil {
			return nil, fmt.Errorf("%w: read tensor %q: %w", ErrCorrupt, e.name, err)
		}
		dims := make([]string, len(e.dims))
		for i, d := range e.dims {
			dims[i] = fmt.Sprint(d)
		}
		lines[i] = fmt.Sprintf("%q %s %s %x\n", e.name, e.Dtype, strings.Join(dims, ","), sum.Sum(nil))
	}
	return lines, nil
}
