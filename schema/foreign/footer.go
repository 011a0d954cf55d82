package foreign

import (
	"bytes"
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
func CheckFooter(data []byte) error {
	const ending = 8 // bytes: the footer's length and the magic
	if len(data) < ending {
		return io.ErrUnexpectedEOF
	}
	text, end := data[:len(data)-ending], data[len(data)-ending:]
	length := int(binary.LittleEndian.Uint32(end))
	if length > len(text) || !bytes.HasSuffix(end, []byte(Magic)) {
		return errors.New("the file does not end as a Parquet file does")
	}
	text = text[len(text)-length:]
	protocol := &thrift.CompactProtocol{}
	if walk(protocol.NewReaderFromBytes(text), thrift.STRUCT, 0) != nil {
		return errNested
	}
	var footer format.FileMetaData
	if err := thrift.Unmarshal(protocol, text, &footer); err != nil {
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

// walk goes through a value of a footer, which depth others hold. It refuses one that the decoder cannot skip.
func walk(r thrift.Reader, kind thrift.Type, depth int) (err error) {
	if depth > mostNesting {
		return errNested
	}
	switch kind {
	case thrift.TRUE, thrift.FALSE: // of a field: the kind is the value
	case thrift.I8:
		_, err = r.ReadInt8()
	case thrift.I16, thrift.I32, thrift.I64:
		_, err = r.ReadInt64()
	case thrift.DOUBLE:
		_, err = r.ReadFloat64()
	case thrift.UUID: // 16 bytes
		if _, err = r.ReadFloat64(); err == nil {
			_, err = r.ReadFloat64()
		}
	case thrift.BINARY:
		_, err = r.ReadBytes()
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = r.ReadList(); err == nil {
			err = walkItems(r, l.Size, depth, l.Type)
		}
	case thrift.MAP:
		var m thrift.Map
		if m, err = r.ReadMap(); err == nil {
			err = walkItems(r, m.Size, depth, m.Key, m.Value)
		}
	case thrift.STRUCT:
		for {
			if f, err := r.ReadField(); err != nil || f == (thrift.Field{}) { // the end
				return err
			} else if err := walk(r, f.Type, depth+1); err != nil {
				return err
			}
		}
	default:
		return errNested
	}
	return err
}

// walkItems goes through n items of a list or a map; the items have the kinds in turn.
func walkItems(r thrift.Reader, n int32, depth int, kinds ...thrift.Type) error {
	for range n {
		for _, kind := range kinds {
			if kind == thrift.TRUE || kind == thrift.FALSE {
				kind = thrift.I8 // of an item: a byte
			}
			if err := walk(r, kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
