package foreign

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// plainDictionary is what older writers call RLEDictionary.
const plainDictionary format.Encoding = 2

// checkEncoding checks that the values of a page are no more than its header says, where a few bytes can stand for any
// number of values.
func checkEncoding(page io.Reader, encoding format.Encoding, values int64) error {
	switch encoding {
	case plainDictionary, format.RLEDictionary:
		var width [1]byte
		if _, err := io.ReadFull(page, width[:]); err != nil {
			return nil // all values are null
		}
		return checkRuns(page, math.MaxInt32, int(width[0]), values)
	case format.RLE:
		return checkRuns(page, -1, 1, values)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray: // begins with two sizes of blocks and the number
		in := bufio.NewReader(page)
		for range 2 {
			if _, err := binary.ReadUvarint(in); err != nil {
				return nil // all values are null
			}
		}
		if n, err := binary.ReadUvarint(in); err != nil || n > uint64(values) {
			return errRuns
		}
	}
	return nil
}

var errRuns = errors.New("a page holds more values than its header says")

// checkRuns checks that runs of values, which have length bytes, are no more than the values. A negative length means
// that the length comes first.
func checkRuns(page io.Reader, length int64, width int, values int64) error {
	if length < 0 {
		var size [4]byte
		if _, err := io.ReadFull(page, size[:]); err != nil {
			return noEOF(err)
		}
		length = int64(binary.LittleEndian.Uint32(size[:]))
	}
	in := bufio.NewReader(io.LimitReader(page, length))
	const padding = 4096 // writers fill the last run up
	for n := int64(0); ; {
		head, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			break
		}
		count, skip := head>>1, int64(width+7)/8
		if head&1 == 1 {
			count, skip = count*8, int64(min(count, math.MaxInt32))*int64(width)
		}
		if n += int64(min(count, math.MaxInt32)); err != nil || n > values+padding {
			return errRuns
		}
		if _, err := io.CopyN(io.Discard, in, skip); err != nil {
			break // the decoder says what is wrong
		}
	}
	_, err := io.Copy(io.Discard, in)
	return err
}
