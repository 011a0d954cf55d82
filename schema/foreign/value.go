package foreign

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// reading returns how values of a type are read as text. The error names a type that has no text.
func reading(t parquet.Type) (func(parquet.Value) (string, error), error) {
	var meaning format.LogicalTypeValue
	if logical := t.LogicalType(); logical != nil {
		meaning = logical.Value
	}
	switch l := meaning.(type) {
	case nil, *format.StringType, *format.EnumType, *format.JsonType, *format.NullType:
		return physical(t)
	case *format.IntType:
		if !l.IsSigned {
			return unsigned(t.Kind()), nil
		}
		return physical(t)
	case *format.DecimalType:
		return decimals(t.Kind(), int(l.Scale))
	case *format.DateType:
		return func(v parquet.Value) (string, error) {
			return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly), nil
		}, nil
	case *format.TimeType:
		return instants(t.Kind(), l.Unit, "15:04:05.999999999"), nil
	case *format.TimestampType:
		if l.IsAdjustedToUTC {
			return instants(t.Kind(), l.Unit, time.RFC3339Nano), nil
		}
		return instants(t.Kind(), l.Unit, "2006-01-02T15:04:05.999999999"), nil
	case *format.UUIDType:
		return func(v parquet.Value) (string, error) {
			b := v.ByteArray()
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
		}, nil
	}
	return nil, fmt.Errorf("values of type %s, want text, numbers or times", t)
}

// timed reports whether values of a logical type are numbers by their stored form alone.
func timed(meaning format.LogicalTypeValue) bool {
	switch meaning.(type) {
	case *format.DateType, *format.TimeType, *format.TimestampType:
		return true
	}
	return false
}

// physical reads values whose stored form is what they mean.
func physical(t parquet.Type) (func(parquet.Value) (string, error), error) {
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) (string, error) { return strconv.FormatBool(v.Boolean()), nil }, nil
	case parquet.Int32:
		return func(v parquet.Value) (string, error) { return strconv.FormatInt(int64(v.Int32()), 10), nil }, nil
	case parquet.Int64:
		return func(v parquet.Value) (string, error) { return strconv.FormatInt(v.Int64(), 10), nil }, nil
	case parquet.Float:
		return func(v parquet.Value) (string, error) { return floating(float64(v.Float()), 32) }, nil
	case parquet.Double:
		return func(v parquet.Value) (string, error) { return floating(v.Double(), 64) }, nil
	case parquet.ByteArray:
		return func(v parquet.Value) (string, error) { return string(v.ByteArray()), nil }, nil
	}
	return nil, fmt.Errorf("values of type %s, want text, numbers or times", t)
}

func unsigned(kind parquet.Kind) func(parquet.Value) (string, error) {
	return func(v parquet.Value) (string, error) {
		if kind == parquet.Int32 {
			return strconv.FormatUint(uint64(v.Uint32()), 10), nil
		}
		return strconv.FormatUint(v.Uint64(), 10), nil
	}
}

// floating writes a number without an exponent: no answer is written with one.
func floating(x float64, bits int) (string, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "", fmt.Errorf("holds %v, which is no number", x)
	}
	return strconv.FormatFloat(x, 'f', -1, bits), nil
}

// decimals reads fixed-point numbers: a whole number, in bytes the highest first, over ten to the scale.
func decimals(kind parquet.Kind, scale int) (func(parquet.Value) (string, error), error) {
	var whole func(parquet.Value) *big.Int
	switch kind {
	case parquet.Int32:
		whole = func(v parquet.Value) *big.Int { return big.NewInt(int64(v.Int32())) }
	case parquet.Int64:
		whole = func(v parquet.Value) *big.Int { return big.NewInt(v.Int64()) }
	case parquet.ByteArray, parquet.FixedLenByteArray:
		whole = func(v parquet.Value) *big.Int { return complement(v.ByteArray()) }
	default:
		return nil, fmt.Errorf("decimals of kind %s", kind)
	}
	if scale < 0 || scale > largestExponent {
		return nil, fmt.Errorf("decimals of scale %d", scale)
	}
	return func(v parquet.Value) (string, error) {
		return trimmed(new(big.Rat).SetFrac(whole(v), tenTo(scale)).FloatString(scale)), nil
	}, nil
}

// complement reads a whole number in two's complement.
func complement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// trimmed is a number without zeros at the end of its fraction.
func trimmed(number string) string {
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number
}

// instants reads times that count units from midnight or from 1970.
func instants(kind parquet.Kind, unit format.TimeUnit, layout string) func(parquet.Value) (string, error) {
	return func(v parquet.Value) (string, error) {
		if unit.Value == nil {
			return "", errors.New("holds times of an unknown unit")
		}
		n, second := v.Int64(), int64(time.Second/unit.Value.Duration())
		if kind == parquet.Int32 {
			n = int64(v.Int32())
		}
		return time.Unix(n/second, n%second*int64(unit.Value.Duration())).UTC().Format(layout), nil
	}
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
	r, ok := new(big.Rat).SetString(mantissa)
	if !ok {
		return "", fmt.Errorf("holds %s, which is no number", number)
	}
	factor := new(big.Rat).SetInt(tenTo(max(power, -power)))
	if power < 0 {
		factor.Inv(factor)
	}
	_, fraction, _ := strings.Cut(mantissa, ".")
	return trimmed(r.Mul(r, factor).FloatString(len(fraction) + max(0, -power))), nil
}
