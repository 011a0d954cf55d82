package foreign

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// mostNesting bounds how deeply the columns of a file, and the structures of its footer, are nested. The decoder itself
// recurses without a bound, and holds the path of each column.
const mostNesting = 64

var errNested = fmt.Errorf("it is damaged, or nested more than %d deep", mostNesting)

// CheckFooter refuses a file whose footer the decoder cannot be given, because it is nested too deeply.
func CheckFooter(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < int64(len(end)) {
		return io.ErrUnexpectedEOF
	}
	if _, err := r.ReadAt(end[:], size-int64(len(end))); err != nil {
		return noEOF(err)
	}
	length := int64(binary.LittleEndian.Uint32(end[:4]))
	if length > size-int64(len(end)) || string(end[4:]) != Magic {
		return errors.New("the file does not end as a Parquet file does")
	}
	text := make([]byte, length)
	if _, err := r.ReadAt(text, size-int64(len(end))-length); err != nil {
		return noEOF(err)
	}
	w := walker{rest: text}
	if w.value(kindStruct, 0); w.bad {
		return errNested
	}
	var footer format.FileMetaData
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, text, &footer); err != nil {
		return err
	}
	if nesting(footer.Schema) > mostNesting {
		return errNested
	}
	return nil
}

// nesting returns how deeply the columns of a schema are nested, which lists each column before its children.
func nesting(schema []format.SchemaElement) (deepest int) {
	var left []int32 // children that each open column still has
	for _, e := range schema {
		for len(left) > 0 && left[len(left)-1] == 0 {
			left = left[:len(left)-1]
		}
		if len(left) > 0 {
			left[len(left)-1]--
		}
		if n := e.NumChildren.V; n > 0 {
			left = append(left, n)
		}
		deepest = max(deepest, len(left))
	}
	return deepest
}

// The types of Thrift's compact protocol.
const (
	kindTrue, kindFalse, kindByte, kindInt16, kindInt32, kindInt64, kindDouble = 1, 2, 3, 4, 5, 6, 7

	kindBinary, kindList, kindSet, kindMap, kindStruct, kindUUID = 8, 9, 10, 11, 12, 13
)

// walker goes through a text of Thrift's compact protocol. bad says that it ends early, holds a type that is none, or
// is nested too deeply.
type walker struct {
	rest []byte
	bad  bool
}

func (w *walker) skip(n uint64) {
	if n > uint64(len(w.rest)) {
		w.rest, w.bad = nil, true
		return
	}
	w.rest = w.rest[n:]
}

func (w *walker) byte() byte {
	if len(w.rest) == 0 {
		w.bad = true
		return 0
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b
}

func (w *walker) number() uint64 {
	n, size := binary.Uvarint(w.rest)
	if size <= 0 {
		w.bad = true
		return 0
	}
	w.rest = w.rest[size:]
	return n
}

// items goes through n items of a list or a map; the items have the kinds in turn.
func (w *walker) items(n uint64, depth int, kinds ...byte) {
	for ; n > 0 && !w.bad; n-- {
		for _, kind := range kinds {
			if kind == kindTrue || kind == kindFalse {
				kind = kindByte
			}
			w.value(kind, depth+1)
		}
	}
}

func (w *walker) value(kind byte, depth int) {
	if depth > mostNesting {
		w.bad = true
	}
	if w.bad {
		return
	}
	switch kind {
	case kindTrue, kindFalse: // of a field: the kind is the value
	case kindByte:
		w.skip(1)
	case kindInt16, kindInt32, kindInt64:
		w.number()
	case kindDouble:
		w.skip(8)
	case kindUUID:
		w.skip(16)
	case kindBinary:
		w.skip(w.number())
	case kindList, kindSet:
		head := w.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = w.number()
		}
		w.items(n, depth, head&15)
	case kindMap:
		if n := w.number(); n > 0 {
			kinds := w.byte()
			w.items(n, depth, kinds>>4, kinds&15)
		}
	case kindStruct:
		for head := w.byte(); head != 0 && !w.bad; head = w.byte() {
			if head>>4 == 0 {
				w.number()
			}
			w.value(head&15, depth+1)
		}
	default:
		w.bad = true
	}
}

// noEOF makes the end of a file in its middle an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
