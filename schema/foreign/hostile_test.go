package foreign_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema/foreign"
)

type shared struct {
	Question string `parquet:"question,dict"`
}

type spelled struct {
	Question string `parquet:"question,delta"`
}

// written writes rows into one group.
func written[T any](t *testing.T, codec compress.Codec, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, append(options, parquet.Compression(codec))...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// openAndRead reads a file whose texts may have a MiB.
func openAndRead(data []byte) error {
	return rescue.Do(func() error {
		table, err := foreign.Open(data, 1<<20)
		if err != nil {
			return err
		}
		return table.Rows([]string{"question"}, func([]any) error { return nil })
	})
}

// claiming changes the footer of a file.
func claiming(t *testing.T, data []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	end := len(data) - 8
	at := end - int(binary.LittleEndian.Uint32(data[end:]))
	var footer format.FileMetaData
	require.NoError(t, thrift.Unmarshal(&thrift.CompactProtocol{}, data[at:end], &footer))
	change(&footer)
	text, err := thrift.Marshal(&thrift.CompactProtocol{}, &footer)
	require.NoError(t, err)
	return ending(data[:at], text)
}

// ending is a file with another footer.
func ending(data, footer []byte) []byte {
	out := append(bytes.Clone(data), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), foreign.Magic...)
}

func TestPagesAreCountedUnpacked(t *testing.T) {
	rows := make([]shared, 3)
	rows[0].Question = strings.Repeat("a", 2<<20)
	small := func(f *format.FileMetaData) {
		for i := range f.RowGroups {
			f.RowGroups[i].TotalByteSize = 1
			f.RowGroups[i].Columns[0].MetaData.TotalUncompressedSize = 1
		}
	}
	for name, codec := range map[string]compress.Codec{"none": &parquet.Uncompressed, "snappy": &parquet.Snappy,
		"gzip": &parquet.Gzip, "zstd": &parquet.Zstd} {
		require.ErrorIs(t, openAndRead(written(t, codec, rows)), foreign.ErrTooLarge, name)
		require.Error(t, openAndRead(claiming(t, written(t, codec, rows), small)), name)
		require.NoError(t, openAndRead(written(t, codec, rows[1:])), name)
		fitting := []shared{{strings.Repeat("a", 1<<18)}, {"b"}}
		require.NoError(t, openAndRead(written(t, codec, fitting)), name)
		require.NoError(t, openAndRead(written(t, codec, fitting, parquet.DataPageVersion(1))), name)
	}
	require.NoError(t, openAndRead(written(t, &parquet.Zstd, []shared{})))
	require.NoError(t, openAndRead(written(t, &parquet.Zstd, []spelled{{"a"}})))
	require.NoError(t, openAndRead(written(t, &parquet.Brotli, rows[1:])))
	require.ErrorContains(t, openAndRead(written(t, &parquet.Lz4Raw, rows[1:])), "LZ4_RAW")
}

func TestRepeatedTextsAreCounted(t *testing.T) {
	rows := make([]shared, 1024)
	for i := range rows {
		rows[i].Question = strings.Repeat("a", 1<<10)
	}
	require.NoError(t, openAndRead(written(t, &parquet.Snappy, rows)))
	require.ErrorIs(t, openAndRead(written(t, &parquet.Snappy, append(rows, shared{"b"}))), foreign.ErrTooLarge)
}

// TestLyingPages changes the claims of a page's header, which the packed bytes do not follow.
func TestLyingPages(t *testing.T) {
	rows := []shared{{strings.Repeat("a", 1<<16)}}
	for name, codec := range map[string]compress.Codec{"snappy": &parquet.Snappy, "gzip": &parquet.Gzip,
		"zstd": &parquet.Zstd} {
		data := written(t, codec, rows)
		size := binary.AppendVarint(nil, 1<<16+4) // of the dictionary, whose text has four bytes for its length
		at := bytes.Index(data, size)
		require.Positive(t, at)
		copy(data[at:], binary.AppendVarint(nil, 1<<15))
		require.ErrorContains(t, openAndRead(data), "it holds more than its header says", name)
	}
}

func TestDeepFooters(t *testing.T) {
	data := written(t, &parquet.Zstd, []shared{{"a"}})
	deep := claiming(t, data, func(f *format.FileMetaData) {
		f.Schema = append(slices.Repeat(f.Schema[:1], 100_000), f.Schema...)
	})
	require.ErrorContains(t, openAndRead(deep), "nested more than 64 deep")
	unknown := append([]byte{0x0c, 0x7e}, bytes.Repeat([]byte{0x1c}, 10_000_000)...)
	require.ErrorContains(t, openAndRead(ending(data, unknown)), "nested more than 64 deep")
}
