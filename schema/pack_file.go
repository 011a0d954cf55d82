package schema

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"slices"
	"unsafe"

	libzstd "github.com/DataDog/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A packed file is written a row group at a time, and a row group column by column: a column's fields are copied out of
// the rows into pages of up to packedPage, which are encoded and compressed at once.

// rowsAtOnce is after how many rows the writer looks whether a page is full.
const rowsAtOnce = 64

// pageRoom is the size at which a page is full. The library leaves this much of packedPage free.
const pageRoom = packedPage * 98 / 100

// mostKept is the size of the largest file whose buffer is used for another file.
const mostKept = 4 << 20

const magic = "PAR1"

// packedWriter writes one file.
type packedWriter struct {
	form    *packedForm
	out     []byte
	chunks  []packedChunk
	groups  []format.RowGroup
	columns [][]format.ColumnIndex
	offsets [][]format.OffsetIndex
	pages   []byte           // of a column that has a dictionary
	levels  [2]encodedLevels // repetition, definition
	// Of the page that is written:
	body, compressed []byte
	header           bytes.Buffer
}

// compact is how Parquet writes its headers and indexes.
var compact = new(thrift.CompactProtocol)

// collected is what columns have in common that one gatherer can collect, one column after the other.
type collected struct {
	kind  reflect.Type
	dict  bool
	full  byte
	holes holes
}

func newPackedWriter(form *packedForm) *packedWriter {
	w := &packedWriter{form: form}
	gatherers := map[collected]gatherer{}
	for i := range form.columns {
		c := &form.columns[i]
		what := collected{c.field.kind, c.dict, byte(c.deepest[1]), c.field.holes}
		if gatherers[what] == nil {
			gatherers[what] = gatheringOf(what.kind)(what.dict, what.full, what.holes)
		}
		w.chunks = append(w.chunks, packedChunk{packedColumn: c, values: gatherers[what]})
	}
	return w
}

// reset releases what belongs to the file and its rows, and keeps the buffers.
func (w *packedWriter) reset() {
	if len(w.out) > mostKept {
		w.out = nil
	}
	w.groups, w.columns, w.offsets = nil, nil, nil
	for i := range w.chunks {
		w.chunks[i].values.release()
	}
}

func encodePacked[R Row](rows []R, groupBytes int) ([]byte, error) {
	form, err := formOf[R]()
	if err != nil {
		return nil, err
	}
	return encodeInForm(form, rows, groupBytes)
}

func encodeInForm[R Row](form *packedForm, rows []R, groupBytes int) ([]byte, error) {
	w := form.writers.get()
	defer form.writers.put(w)
	defer w.reset()
	w.out = append(w.out[:0], magic...)
	for start := 0; start < len(rows); {
		end, raw := groupEnd(rows, start, groupBytes)
		w.expect(raw)
		first := unsafe.Pointer(&rows[start])
		if err := w.group(first, end-start, unsafe.Sizeof(rows[0])); err != nil {
			return nil, fmt.Errorf("rows %d–%d: %w", start, end-1, err)
		}
		start = end
	}
	return w.close()
}

// expect makes room for a row group of a raw size. Growing step by step would take as long as encoding.
func (w *packedWriter) expect(raw int) {
	page := min(raw, packedPage) + packedPage/16
	w.body = slices.Grow(w.body[:0], page)
	w.compressed = slices.Grow(w.compressed[:0], libzstd.CompressBound(page))
	w.out = slices.Grow(w.out, raw/4)
}

// group writes a row group of n rows, which follow each other at a distance of size bytes from the first.
func (w *packedWriter) group(first unsafe.Pointer, n int, size uintptr) error {
	g := format.RowGroup{NumRows: int64(n), SortingColumns: w.form.sorting, FileOffset: int64(len(w.out)),
		Ordinal: int16(len(w.groups))}
	var columns []format.ColumnIndex
	var offsets []format.OffsetIndex
	for i := range w.chunks {
		c := &w.chunks[i]
		if err := w.chunk(c, first, n, size); err != nil {
			return fmt.Errorf("column %s: %w", c.field.name, err)
		}
		columns = append(columns, c.columnIndex())
		offsets = append(offsets, format.OffsetIndex{PageLocations: c.locations})
	}
	for i := range w.chunks {
		c := &w.chunks[i]
		if err := w.filter(c); err != nil {
			return fmt.Errorf("column %s: %w", c.field.name, err)
		}
		g.TotalByteSize += c.meta.TotalUncompressedSize
		g.TotalCompressedSize += c.meta.TotalCompressedSize
		g.Columns = append(g.Columns, format.ColumnChunk{MetaData: c.meta})
	}
	w.groups = append(w.groups, g)
	w.columns, w.offsets = append(w.columns, columns), append(w.offsets, offsets)
	return nil
}

// chunk writes one column of a row group.
func (w *packedWriter) chunk(c *packedChunk, first unsafe.Pointer, n int, size uintptr) error {
	c.begin(n)
	pages := &w.out
	if c.dict { // the dictionary comes first in the file
		w.pages = w.pages[:0]
		pages = &w.pages
	}
	c.meta.DataPageOffset = int64(len(w.out))
	first = unsafe.Add(first, c.field.offset)
	c.values.expect(first, n, size)
	for start := 0; start < n; start += rowsAtOnce {
		count := min(rowsAtOnce, n-start)
		c.values.add(unsafe.Add(first, uintptr(start)*size), count, size)
		if start+count == n || c.values.bytes() >= pageRoom {
			if err := c.addPage(w, pages, c.values.cut(c.packedColumn)); err != nil {
				return err
			}
		}
	}
	if c.dict {
		c.meta.DictionaryPageOffset = int64(len(w.out))
		if err := c.addDictionary(w); err != nil {
			return err
		}
		c.meta.DataPageOffset = int64(len(w.out))
		w.out = append(w.out, w.pages...)
	}
	for i := range c.locations {
		c.locations[i].Offset += c.meta.DataPageOffset
	}
	return nil
}

// add appends a page, compressed at a level of zstd, after its header, and returns the size of both.
func (w *packedWriter) add(out *[]byte, header *format.PageHeader, body []byte, level int) (size int32, err error) {
	if len(body) > math.MaxInt32 {
		return 0, fmt.Errorf("a page of %d bytes is larger than Parquet allows", len(body))
	}
	if w.compressed, err = compress(w.compressed, body, level); err != nil {
		return 0, err
	}
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(body)), int32(len(w.compressed))
	header.CRC = int32(crc32.ChecksumIEEE(w.compressed))
	w.header.Reset()
	if err := thrift.NewEncoder(compact.NewWriter(&w.header)).Encode(header); err != nil {
		return 0, err
	}
	*out = append(append(*out, w.header.Bytes()...), w.compressed...)
	return int32(w.header.Len() + len(w.compressed)), nil
}

// filter writes a column's bloom filter, if it has one.
func (w *packedWriter) filter(c *packedChunk) error {
	if c.filter == nil {
		return nil
	}
	var header format.BloomFilterHeader
	header.NumBytes = int32(len(c.bits))
	header.Algorithm.Value, header.Hash.Value = &format.SplitBlockAlgorithm{}, &format.XxHash{}
	header.Compression.Value = &format.BloomFilterUncompressed{}
	encoded, err := thrift.Marshal(compact, &header)
	if err != nil {
		return err
	}
	c.meta.BloomFilterOffset = int64(len(w.out))
	c.meta.BloomFilterLength = int32(len(encoded) + len(c.bits))
	w.out = append(append(w.out, encoded...), c.bits...)
	return nil
}

// close writes the indexes of all pages, the footer and its length, and returns the file.
func (w *packedWriter) close() ([]byte, error) {
	out := bytes.NewBuffer(w.out)
	encoder := thrift.NewEncoder(compact.NewWriter(out))
	encode := func(v any) (at, size int, err error) {
		at = out.Len()
		err = encoder.Encode(v)
		return at, out.Len() - at, err
	}
	for g := range w.columns {
		for i := range w.columns[g] {
			at, size, err := encode(&w.columns[g][i])
			if err != nil {
				return nil, err
			}
			c := &w.groups[g].Columns[i]
			c.ColumnIndexOffset, c.ColumnIndexLength = int64(at), int32(size)
		}
	}
	for g := range w.offsets {
		for i := range w.offsets[g] {
			at, size, err := encode(&w.offsets[g][i])
			if err != nil {
				return nil, err
			}
			c := &w.groups[g].Columns[i]
			c.OffsetIndexOffset, c.OffsetIndexLength = int64(at), int32(size)
		}
	}
	footer := w.form.footer
	footer.RowGroups = w.groups
	for _, g := range w.groups {
		footer.NumRows += g.NumRows
	}
	_, size, err := encode(&footer)
	if err != nil {
		return nil, err
	}
	w.out = append(binary.LittleEndian.AppendUint32(out.Bytes(), uint32(size)), magic...)
	if len(w.out) > mostKept {
		return w.out, nil
	}
	return bytes.Clone(w.out), nil
}
