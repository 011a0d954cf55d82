package sql

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"
)

// plain turns what the driver returns into what JSON can hold: nil, bool, integers, finite floats,
// json.Number, strings, lists and maps of those.
func plain(v any, kind string) any {
	switch x := v.(type) {
	case float32:
		return finite(float64(x), 32)
	case float64:
		return finite(x, 64)
	case *big.Int:
		return json.Number(x.String())
	case duckdb.Decimal:
		return json.Number(x.String())
	case time.Time:
		return moment(x, kind)
	case []byte:
		if kind == "UUID" && len(x) == 16 {
			return uuid(x)
		}
		return `\x` + hex.EncodeToString(x)
	case duckdb.UUID:
		return uuid(x[:])
	case duckdb.Interval:
		return fmt.Sprintf("%d months %d days %s", x.Months, x.Days, time.Duration(x.Micros)*time.Microsecond)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = plain(x[i], "")
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k := range x {
			out[k] = plain(x[k], "")
		}
		return out
	case duckdb.Map:
		out := make(map[string]any, len(x))
		for k := range x {
			out[fmt.Sprint(plain(k, ""))] = plain(x[k], "")
		}
		return out
	case duckdb.OrderedMap:
		return orderedMap(x)
	case duckdb.Union:
		return plain(x.Value, "")
	}
	return v
}

func orderedMap(x duckdb.OrderedMap) any {
	out := map[string]any{}
	values := x.Values()
	for i, k := range x.Keys() {
		out[fmt.Sprint(plain(k, ""))] = plain(values[i], "")
	}
	return out
}

// finite spells out what JSON has no number for, and keeps a single's short form.
func finite(x float64, bits int) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	case bits == 32:
		return json.Number(strconv.FormatFloat(x, 'g', -1, 32))
	}
	return x
}

func moment(t time.Time, kind string) string {
	switch {
	case kind == "DATE":
		return t.Format(time.DateOnly)
	case strings.HasPrefix(kind, "TIME") && !strings.HasPrefix(kind, "TIMESTAMP"):
		return t.Format("15:04:05.999999")
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func uuid(b []byte) string {
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// text is a plain value as a cell: null is the empty text, lists and maps are JSON.
func text(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case []any, map[string]any:
		data, err := json.Marshal(x)
		if err != nil {
			return fmt.Sprint(x)
		}
		return string(data)
	}
	return fmt.Sprint(v)
}
