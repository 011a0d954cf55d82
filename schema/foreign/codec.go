package foreign

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// exact unpacks a page into the bytes that its header asks for. The usual codecs make room for what the packed bytes
// claim.
type exact struct {
	compress.Codec
	unpack func(to, page []byte) ([]byte, error)
}

var errLonger = errors.New("unpack a page: it holds more than its header says")

// Decode implements compress.Codec, whose errors are panics.
func (e exact) Decode(to, page []byte) []byte {
	if len(page) == 0 { // of a page whose values are all null
		return to[:0]
	}
	out, err := e.unpack(to, page)
	if err != nil {
		panic(err)
	}
	return out
}

func init() {
	for name, unpack := range map[compress.Compression]func(to, page []byte) ([]byte, error){
		compress.Codecs.Snappy: unpackSnappy, compress.Codecs.Gzip: unpackGzip, compress.Codecs.Zstd: unpackZstd} {
		usual, err := compress.GetCodec(name)
		if err != nil {
			panic(err)
		}
		compress.RegisterCodec(name, exact{usual, unpack})
	}
}

func unpackSnappy(to, page []byte) ([]byte, error) {
	if n, err := snappy.DecodedLen(page); err != nil || n > len(to) {
		return nil, errors.Join(err, errLonger)
	}
	return snappy.Decode(to, page)
}

func unpackGzip(to, page []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	return fill(to, z)
}

// mostWindow is how many bytes zstd may look back.
const mostWindow = 1 << 27

func unpackZstd(to, page []byte) ([]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(page), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(mostWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return fill(to, z)
}

func fill(to []byte, from io.Reader) ([]byte, error) {
	if _, err := io.ReadFull(from, to); err != nil {
		return nil, fmt.Errorf("unpack a page: %v", err) // an io.EOF that is wrapped would end the reading of batches
	}
	if n, _ := from.Read(make([]byte, 1)); n > 0 {
		return nil, errLonger
	}
	return to, nil
}
