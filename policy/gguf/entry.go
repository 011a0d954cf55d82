package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The types of values, as the specification numbers them.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

// entry is one named value: uint32, float32, bool, string, []string or []int32.
type entry struct {
	key   string
	value any
}

func (e entry) append(out []byte) []byte {
	out = appendString(out, e.key)
	switch v := e.value.(type) {
	case uint32:
		return order.AppendUint32(order.AppendUint32(out, typeUint32), v)
	case float32:
		return order.AppendUint32(order.AppendUint32(out, typeFloat32), math.Float32bits(v))
	case bool:
		out = order.AppendUint32(out, typeBool)
		if v {
			return append(out, 1)
		}
		return append(out, 0)
	case string:
		return appendString(order.AppendUint32(out, typeString), v)
	case []string:
		out = appendArray(out, typeString, len(v))
		for _, s := range v {
			out = appendString(out, s)
		}
		return out
	case []int32:
		out = appendArray(out, typeInt32, len(v))
		for _, n := range v {
			out = order.AppendUint32(out, uint32(n))
		}
		return out
	}
	panic(fmt.Sprintf("gguf entry %s: a %T", e.key, e.value)) // entries have the types above
}

var order = binary.LittleEndian

func appendString(out []byte, s string) []byte {
	return append(order.AppendUint64(out, uint64(len(s))), s...)
}

func appendArray(out []byte, of uint32, n int) []byte {
	return order.AppendUint64(order.AppendUint32(order.AppendUint32(out, typeArray), of), uint64(n))
}
