package schema

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// packedChunk is one column of the row group that is written.
type packedChunk struct {
	*packedColumn
	values gatherer

	// Of the row group:
	bits      []byte // of the bloom filter
	meta      format.ColumnMetaData
	indexer   parquet.ColumnIndexer
	index     format.ColumnIndex // histograms only; indexer has the rest
	locations []format.PageLocation
	rows      int
}

// begin starts a row group.
func (c *packedChunk) begin(rows int) {
	c.locations, c.rows = nil, 0
	c.indexer, c.index = c.kind.NewColumnIndexer(parquet.DefaultColumnIndexSizeLimit), format.ColumnIndex{}
	c.meta = format.ColumnMetaData{
		Type: format.Type(c.kind.Kind()), Encoding: c.encodings, PathInSchema: c.path, Codec: format.Zstd,
		SizeStatistics: format.SizeStatistics{
			RepetitionLevelHistogram: histogram(c.deepest[0]),
			DefinitionLevelHistogram: histogram(c.deepest[1]),
		},
	}
	c.bits = nil
	if c.filter != nil {
		c.bits = make([]byte, c.filter.Size(int64(rows)))
	}
}

// columnIndex returns what the file says about each page's values.
func (c *packedChunk) columnIndex() format.ColumnIndex {
	index := c.indexer.ColumnIndex()
	index.RepetitionLevelHistogram = c.index.RepetitionLevelHistogram
	index.DefinitionLevelHistogram = c.index.DefinitionLevelHistogram
	return index
}

// histogram returns room for how often each level occurs; nil for a column without levels.
func histogram(deepest int) []int64 {
	if deepest == 0 {
		return nil
	}
	return make([]int64, deepest+1)
}

// addPage encodes and compresses a page, and appends it to out.
func (c *packedChunk) addPage(w *packedWriter, out *[]byte, p page) error {
	body, err := c.encode(w, p)
	if err != nil {
		return err
	}
	header := format.PageHeader{Type: format.DataPage}
	header.DataPageHeader = thrift.New(format.DataPageHeader{
		NumValues: int32(p.entries), Encoding: c.encoding.Encoding(), DefinitionLevelEncoding: format.RLE,
		RepetitionLevelEncoding: format.RLE, Statistics: c.statistics(p),
	})
	size, err := w.add(out, &header, body, c.level)
	if err != nil {
		return err
	}
	c.locations = append(c.locations, format.PageLocation{
		Offset: c.meta.TotalCompressedSize, CompressedPageSize: size, FirstRowIndex: int64(c.rows),
	})
	c.count(&header, size)
	c.record(p)
	return c.filterPage(p)
}

// encode returns the levels and values of a page, uncompressed.
func (c *packedChunk) encode(w *packedWriter, p page) (body []byte, err error) {
	body = w.body[:0]
	for i, levels := range [][]byte{p.repetition, p.definition} {
		if c.deepest[i] > 0 {
			if body, err = w.levels[i].append(body, levels, c.deepest[i]); err != nil {
				return nil, err
			}
		}
	}
	if c.dict {
		body, err = appendIndices(body, p.values.Int32())
	} else {
		body, err = appended(body, func(dst []byte) ([]byte, error) {
			return c.kind.Encode(dst, p.values, c.encoding)
		})
	}
	w.body = body
	return body, err
}

// encodedLevels are the levels that were encoded last. The lists of a row mostly have one length, and then the levels
// of one column are those of the next.
type encodedLevels struct {
	deepest         int
	levels, encoded []byte
}

// append appends levels, as appendLevels does.
func (e *encodedLevels) append(body, levels []byte, deepest int) ([]byte, error) {
	if deepest == e.deepest && bytes.Equal(levels, e.levels) {
		return append(body, e.encoded...), nil
	}
	start := len(body)
	body, err := appendLevels(body, levels, deepest)
	if err != nil {
		return nil, err
	}
	e.deepest = deepest
	e.levels, e.encoded = append(e.levels[:0], levels...), append(e.encoded[:0], body[start:]...)
	return body, nil
}

// appendLevels appends levels and, in front, how many bytes they take.
func appendLevels(body, levels []byte, deepest int) ([]byte, error) {
	start := len(body)
	encoding := rle.Encoding{BitWidth: bits.Len(uint(deepest))}
	body, err := appended(append(body, 0, 0, 0, 0), func(dst []byte) ([]byte, error) {
		return encoding.EncodeLevels(dst, levels)
	})
	binary.LittleEndian.PutUint32(body[start:], uint32(len(body)-start-4))
	return body, err
}

// appended appends what encode returns. Encode writes over the bytes that it is given, if they suffice.
func appended(body []byte, encode func(dst []byte) ([]byte, error)) ([]byte, error) {
	room := body[len(body):cap(body)]
	encoded, err := encode(room[:0])
	if err != nil {
		return nil, err
	}
	if n := len(encoded); n > 0 && n <= len(room) && &encoded[0] == &room[0] {
		return body[:len(body)+n], nil
	}
	return append(body, encoded...), nil
}

// statistics returns what a page's header says about its values.
func (c *packedChunk) statistics(p page) format.Statistics {
	if !c.bounds {
		return format.Statistics{}
	}
	low, high := p.low.Bytes(), p.high.Bytes()
	return format.Statistics{Min: low, Max: high, NullCount: int64(p.nulls), MinValue: low, MaxValue: high}
}

// count adds a page to the sizes and numbers of the column.
func (c *packedChunk) count(header *format.PageHeader, size int32) {
	stats := format.PageEncodingStats{PageType: header.Type, Encoding: format.Plain, Count: 1}
	if header.Type == format.DataPage {
		stats.Encoding = c.encoding.Encoding()
	}
	c.meta.TotalCompressedSize += int64(size)
	c.meta.TotalUncompressedSize += int64(size - header.CompressedPageSize + header.UncompressedPageSize)
	if n := len(c.meta.EncodingStats); n > 0 && c.meta.EncodingStats[n-1].PageType == header.Type {
		c.meta.EncodingStats[n-1].Count++
		return
	}
	c.meta.EncodingStats = append(c.meta.EncodingStats, stats)
}

// record adds a page to the column's statistics and index.
func (c *packedChunk) record(p page) {
	c.indexer.IndexPage(int64(p.entries), int64(p.nulls), p.low, p.high)
	c.meta.NumValues += int64(p.entries)
	c.meta.Statistics.NullCount += int64(p.nulls)
	c.rows += p.rows
	sizes := &c.meta.SizeStatistics
	sizes.UnencodedByteArrayDataBytes += p.text
	if c.deepest[0] > 0 {
		levels := []int64{int64(p.rows), int64(p.entries - p.rows)}
		c.index.RepetitionLevelHistogram = append(c.index.RepetitionLevelHistogram, levels...)
		addTo(sizes.RepetitionLevelHistogram, levels)
	}
	if c.deepest[1] > 0 {
		levels := make([]int64, c.deepest[1]+1)
		levels[0] += int64(p.void)
		if c.field.holes.any {
			levels[c.deepest[1]-2] += int64(p.none)
			levels[c.deepest[1]-1] -= int64(p.none)
		}
		levels[c.deepest[1]-1] += int64(p.nulls - p.void)
		levels[c.deepest[1]] += int64(p.entries - p.nulls)
		c.index.DefinitionLevelHistogram = append(c.index.DefinitionLevelHistogram, levels...)
		addTo(sizes.DefinitionLevelHistogram, levels)
	}
	if p.bounded {
		c.widen(p.low, p.high)
	}
}

func addTo(sums, numbers []int64) {
	for i, n := range numbers {
		sums[i] += n
	}
}

// widen makes the column's bounds include those of a page.
func (c *packedChunk) widen(low, high parquet.Value) {
	s, of := &c.meta.Statistics, c.kind.Kind()
	if s.MinValue == nil || c.kind.Compare(low, of.Value(s.MinValue)) < 0 {
		s.MinValue = append([]byte{}, low.Bytes()...)
	}
	if s.MaxValue == nil || c.kind.Compare(high, of.Value(s.MaxValue)) > 0 {
		s.MaxValue = append([]byte{}, high.Bytes()...)
	}
}

// filterPage adds a page's values to the bloom filter.
func (c *packedChunk) filterPage(p page) (err error) {
	if c.filter != nil {
		c.bits, err = c.kind.Encode(c.bits, p.values, c.filter.Encoding())
	}
	return err
}

// addDictionary writes the dictionary of the pages to the file, where it comes before them.
func (c *packedChunk) addDictionary(w *packedWriter) error {
	values, n := c.values.dictionary()
	body, err := c.kind.Encode(w.body[:0], values, &parquet.Plain)
	if err != nil {
		return err
	}
	w.body = body
	header := format.PageHeader{Type: format.DictionaryPage}
	header.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain})
	size, err := w.add(&w.out, &header, body, c.level)
	if err != nil {
		return err
	}
	c.count(&header, size)
	return nil
}
