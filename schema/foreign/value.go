package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// cell is the value of a column in a row.
func cell(name string, column arrow.Array, row int) any {
	v, err := valueOf(column, row)
	if err != nil {
		return fmt.Errorf("%s holds %w", name, err)
	}
	switch v := v.(type) {
	case nil, string:
		return v
	case bool:
		return strconv.FormatBool(v)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s holds a value of type %s that has no text: %w", name, column.DataType(), err)
	}
	if out[0] == '{' || out[0] == '[' {
		return json.RawMessage(out)
	}
	text, err := Decimal(string(out))
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	return text
}

// uuidBytes is the length of an identifier.
const uuidBytes = 16

// valueOf returns a string, a truth value, a number, nil for null, or a list or a map of such.
func valueOf(column arrow.Array, row int) (any, error) {
	if column.IsNull(row) {
		return nil, nil
	}
	switch c := column.(type) {
	case *array.Dictionary:
		return valueOf(c.Dictionary(), c.GetValueIndex(row))
	case *array.Struct:
		return fields(c, row)
	case array.ListLike:
		return items(c, row)
	case array.StringLike:
		return strings.Clone(c.Value(row)), nil
	case *array.Binary: // text of a writer that does not say so
		return string(c.Value(row)), nil
	case *array.LargeBinary:
		return string(c.Value(row)), nil
	case *array.FixedSizeBinary:
		b := c.Value(row)
		if len(b) != uuidBytes {
			return nil, fmt.Errorf("values of type %s, want text, numbers or times", c.DataType())
		}
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
	case *array.Decimal128:
		return fixed(c.Value(row).BigInt(), c.DataType()), nil
	case *array.Decimal256:
		return fixed(c.Value(row).BigInt(), c.DataType()), nil
	case *array.Float32:
		return floating(float64(c.Value(row)), 32)
	case *array.Float64:
		return floating(c.Value(row), 64)
	case *array.Timestamp:
		return instant(c.Value(row), c.DataType().(*arrow.TimestampType)), nil
	}
	return column.GetOneForMarshal(row), nil
}

func fields(of *array.Struct, row int) (any, error) {
	out := map[string]any{}
	for i, f := range of.DataType().(*arrow.StructType).Fields() {
		v, err := inner(of.Field(i), row)
		if err != nil {
			return nil, fmt.Errorf("%w in %s", err, f.Name)
		}
		out[f.Name] = v
	}
	return out, nil
}

func items(of array.ListLike, row int) (any, error) {
	from, to := of.ValueOffsets(row)
	out := make([]any, to-from)
	for i := range out {
		var err error
		if out[i], err = inner(of.ListValues(), int(from)+i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// inner is a value that becomes a part of JSON.
func inner(column arrow.Array, row int) (any, error) {
	v, err := valueOf(column, row)
	if text, is := v.(string); is && !utf8.ValidString(text) {
		return nil, errors.New("a text that is not UTF-8")
	}
	return v, err
}

// floating writes a number without an exponent: no answer is written with one.
func floating(x float64, bits int) (any, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%v, which is no number", x)
	}
	return json.Number(strconv.FormatFloat(x, 'f', -1, bits)), nil
}

// fixed writes a fixed-point number: a whole number over ten to the scale.
func fixed(whole *big.Int, t arrow.DataType) string {
	scale := int64(t.(arrow.DecimalType).GetScale())
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)
	return trimmed(new(big.Rat).SetFrac(whole, unit).FloatString(int(scale)))
}

func instant(at arrow.Timestamp, t *arrow.TimestampType) string {
	if t.TimeZone != "" {
		return at.ToTime(t.Unit).Format(time.RFC3339Nano)
	}
	return at.ToTime(t.Unit).Format("2006-01-02T15:04:05.999999999")
}

// trimmed is a number without zeros at the end of its fraction.
func trimmed(number string) string {
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number
}

// largestExponent bounds the digits that an exponent can ask for.
const largestExponent = 400

// Decimal writes a JSON number without an exponent: no answer is written with one. A number without one stays as it is.
func Decimal(number string) (string, error) {
	mantissa, exponent, found := strings.Cut(strings.ToLower(number), "e")
	if !found {
		return number, nil
	}
	power, err := strconv.Atoi(exponent)
	if err != nil || power > largestExponent || power < -largestExponent {
		return "", fmt.Errorf("holds %s, whose exponent is beyond ±%d", number, largestExponent)
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return "", fmt.Errorf("holds %s, which is no number", number)
	}
	_, fraction, _ := strings.Cut(mantissa, ".")
	return trimmed(r.FloatString(len(fraction) + max(0, -power))), nil
}
