package foreign

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The decoder makes what a file claims: pages of any size from a few packed bytes, and room for any number of values.
// The footer's sizes are claims of their own. So every page is unpacked once before it is decoded, without being held,
// and what it holds is counted.

const (
	mostHeader = 4 << 20 // bytes of a page's header, which may repeat the least and the largest value
	mostWindow = 1 << 27 // bytes that zstd may look back
)

// pages checks the pages of one column in one group of rows.
type pages struct {
	in          *bufio.Reader
	codec       format.CompressionCodec
	repetitions int // bits of a level; 0 = the column has none
	definitions int
	most        int64
}

// checkPages refuses a file whose pages hold more than most bytes, or in one page more values than that many bytes can
// number, and pages whose size cannot be known before they are decoded.
func checkPages(r io.ReaderAt, f *parquet.File, most int64) error {
	left, in, paths := most, bufio.NewReaderSize(nil, mostHeader), f.Schema().Columns()
	for _, group := range f.Metadata().RowGroups {
		for i := range group.Columns {
			c := &group.Columns[i].MetaData
			leaf, _ := f.Schema().Lookup(paths[i]...)
			start := c.DataPageOffset
			if c.DictionaryPageOffset != 0 {
				start = c.DictionaryPageOffset
			}
			in.Reset(io.NewSectionReader(r, start, c.TotalCompressedSize))
			p := pages{in, c.Codec, bits.Len(uint(leaf.MaxRepetitionLevel)), bits.Len(uint(leaf.MaxDefinitionLevel)),
				most}
			for {
				unpacked, err := p.check()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return err
				}
				if left -= unpacked; left < 0 {
					return ErrTooLarge
				}
			}
		}
	}
	return nil
}

// check reads one page and returns how many bytes it holds. The error after the last page is io.EOF.
func (p pages) check() (size int64, err error) {
	var h format.PageHeader
	if err := readHeader(p.in, &h); err != nil {
		return 0, err
	}
	c, err := p.claims(&h)
	if err != nil {
		return 0, err
	}
	page := io.LimitReader(p.in, int64(h.CompressedPageSize))
	if err := p.checkLevels(page, h.DataPageHeaderV2.V, c.values); err != nil {
		return 0, err
	}
	text := page
	if c.packed {
		unpacked, done, err := unpack(page, p.codec, c.size)
		if err != nil {
			return 0, fmt.Errorf("unpack a page: %w", noEOF(err))
		}
		defer done()
		text = unpacked
	}
	counted := &io.LimitedReader{R: text, N: c.size + 1}
	if h.Type == format.DataPage {
		for _, level := range []struct {
			bits     int
			encoding format.Encoding
		}{{p.repetitions, h.DataPageHeader.V.RepetitionLevelEncoding},
			{p.definitions, h.DataPageHeader.V.DefinitionLevelEncoding}} {
			if level.bits > 0 && level.encoding == format.RLE {
				if err := checkRuns(counted, -1, level.bits, c.values); err != nil {
					return 0, err
				}
			}
		}
	}
	if err := checkEncoding(counted, c.encoding, c.values); err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return 0, fmt.Errorf("unpack a page: %w", noEOF(err))
	}
	if counted.N == 0 {
		return 0, errors.New("unpack a page: it holds more than its header says")
	}
	_, err = io.Copy(io.Discard, page)
	return int64(h.UncompressedPageSize), err
}

// claims are what the header of a page says of it.
type claims struct {
	size     int64 // bytes of its values, and of its levels in version 1
	packed   bool
	values   int64
	encoding format.Encoding
}

// claims reads a header, and refuses a page that cannot be, whose size cannot be known, or that is too large.
func (p pages) claims(h *format.PageHeader) (c claims, err error) {
	levels, size, stored := int64(0), int64(h.UncompressedPageSize), int64(h.CompressedPageSize)
	c = claims{packed: p.codec != format.Uncompressed, values: int64(h.DictionaryPageHeader.V.NumValues)}
	switch h.Type {
	case format.DataPage:
		c.values, c.encoding = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
	case format.DataPageV2: // its levels are not packed
		v2 := h.DataPageHeaderV2.V
		c.values, c.encoding = int64(v2.NumValues), v2.Encoding
		levels = int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
		c.packed = c.packed && (!v2.IsCompressed.Valid || v2.IsCompressed.V)
	}
	switch {
	case levels < 0 || levels > min(size, stored) || c.values < 0 || !c.packed && stored != size:
		return c, errors.New("the header of a page holds sizes that cannot be")
	case c.encoding == format.DeltaByteArray:
		return c, errors.New("pages of the encoding DELTA_BYTE_ARRAY are not read")
	case size > p.most || 4*c.values > p.most:
		return c, ErrTooLarge
	}
	c.size, c.packed = size-levels, c.packed && stored > levels
	return c, nil
}

// checkLevels checks the levels of a page of version 2, which has them before its values. Other pages have none there.
func (p pages) checkLevels(page io.Reader, v2 format.DataPageHeaderV2, values int64) (err error) {
	for _, level := range []struct {
		length int32
		bits   int
	}{{v2.RepetitionLevelsByteLength, p.repetitions}, {v2.DefinitionLevelsByteLength, p.definitions}} {
		if level.bits == 0 { // the decoder skips them
			_, err = io.CopyN(io.Discard, page, int64(level.length))
		} else {
			err = checkRuns(page, int64(level.length), level.bits, values)
		}
		if err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// readHeader reads the header of a page. Most are short.
func readHeader(in *bufio.Reader, h *format.PageHeader) error {
	for most := 4 << 10; ; most = mostHeader {
		head, err := in.Peek(most)
		if len(head) == 0 {
			return err
		}
		text := (&thrift.CompactProtocol{}).NewReaderFromBytes(head)
		if err := thrift.NewDecoder(text).Decode(h); err != nil {
			if len(head) < most || most == mostHeader {
				return fmt.Errorf("read the header of a page: %w", noEOF(err))
			}
			*h = format.PageHeader{}
			continue
		}
		rest, err := io.Copy(io.Discard, text.Reader())
		if err != nil {
			return err
		}
		_, err = in.Discard(len(head) - int(rest))
		return err
	}
}

// unpack returns what a page holds, which must be size bytes at most, and what ends the reading.
func unpack(page io.Reader, codec format.CompressionCodec, size int64) (io.Reader, func(), error) {
	switch codec {
	case format.Snappy: // begins with its size
		data, err := io.ReadAll(page)
		if err != nil {
			return nil, nil, err
		}
		if n, err := snappy.DecodedLen(data); err != nil || int64(n) > size {
			return nil, nil, errors.Join(err, errors.New("it holds more than its header says"))
		}
		text, err := snappy.Decode(nil, data)
		return bytes.NewReader(text), func() {}, err
	case format.Gzip:
		z, err := gzip.NewReader(page)
		return z, func() {}, err
	case format.Zstd:
		z, err := zstd.NewReader(page, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return nil, nil, fmt.Errorf("it is packed as %s; SNAPPY, GZIP and ZSTD are read", codec)
}

// noEOF makes the end of a page in its middle an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
