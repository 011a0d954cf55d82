package schema

import (
	"fmt"
	"strings"

	libzstd "github.com/DataDog/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// packedPage is how large a page of a packed table may grow before it is compressed.
const packedPage = 1 << 21

// packedLevel is zstd's level for packed tables: level 1 leaves 2% more bytes of a file, and level 4 takes a third
// longer.
const packedLevel = 3

// packedLevels are the levels of columns for which another is the better bargain. Log-probabilities take two fifths of
// the time at level 1, for 0.7% more bytes of the file.
var packedLevels = map[string]int{"logprobs": 1}

// levelOf returns zstd's level for a column of a packed table.
func levelOf(column string) int {
	list, _, _ := strings.Cut(column, ".")
	if level, ok := packedLevels[list]; ok {
		return level
	}
	return packedLevel
}

// Packed reports whether a table's shards are written for size: with large pages, whose levels are compressed too
// (pages of version 1), by the C library of zstd, which is smaller and faster than the Go one. These are the tables
// with a list for each token, which are most of a record's bytes. No table of a pure stage is among them, because a
// check of a run compares the digests of shards that another version of the program has written.
//
// They are written column by column (encodePacked). At one level for all columns the files are the same, byte for byte,
// as those of parquet-go's writer with the options of packing, which takes twice as long.
func (t Table) Packed() bool {
	return t == Turns || t == TokenOutputs || t == EvaluationTurns || t == Behaviour
}

func packing() []parquet.WriterOption {
	return []parquet.WriterOption{
		parquet.Compression(packer{}), parquet.DataPageVersion(1), parquet.PageBufferSize(packedPage),
	}
}

// contexts are reused, because each takes megabytes outside Go's heap. The garbage collector frees those that are
// dropped.
var contexts = newSpares(libzstd.NewCtx)

// packer is zstd through its C library. Files that it compresses are read with the Go one.
type packer struct{}

// Encode implements compress.Codec.
func (packer) Encode(dst, src []byte) ([]byte, error) { return compress(dst, src, packedLevel) }

// compress writes src, compressed at a level, over dst.
func compress(dst, src []byte, level int) ([]byte, error) {
	c := contexts.get()
	defer contexts.put(c)
	out, err := c.CompressLevel(dst[:cap(dst)], src, level)
	if err != nil {
		return nil, fmt.Errorf("compress %d bytes: %w", len(src), err)
	}
	return out, nil
}

// Decode implements compress.Codec. The library's writer reads pages back to fill bloom filters.
func (packer) Decode(dst, src []byte) ([]byte, error) { return parquet.Zstd.Decode(dst, src) }

// String implements compress.Codec.
func (packer) String() string { return parquet.Zstd.String() }

// CompressionCodec implements compress.Codec.
func (packer) CompressionCodec() format.CompressionCodec { return format.Zstd }
