package device

import (
	"encoding/json"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Reading is a value that a device may not support. In JSON it is the value, or null without support.
type Reading[T any] struct {
	Value T
	OK    bool // there is a value
}

// Some returns a reading with a value.
func Some[T any](v T) Reading[T] { return Reading[T]{v, true} }

// Or returns the value, or other if there is none.
func (r Reading[T]) Or(other T) T {
	if r.OK {
		return r.Value
	}
	return other
}

// String renders the reading for people.
func (r Reading[T]) String() string {
	if r.OK {
		return fmt.Sprint(r.Value)
	}
	return "not supported"
}

// MarshalJSON writes the value or null.
func (r Reading[T]) MarshalJSON() ([]byte, error) {
	if !r.OK {
		return []byte("null"), nil
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Reading[T]) UnmarshalJSON(data []byte) error {
	*r = Reading[T]{}
	if string(data) == "null" {
		return nil
	}
	r.OK = true
	return json.Unmarshal(data, &r.Value)
}

// then converts a reading with f.
func then[T, U any](r Reading[T], f func(T) U) Reading[U] {
	if !r.OK {
		return Reading[U]{}
	}
	return Some(f(r.Value))
}

// probe reads one device and collects the errors.
type probe struct {
	host   *Host
	dev    nvml.Device
	faults map[string]string // field → why it could not be read, other than not supported
	lost   nvml.Return       // ERROR_GPU_IS_LOST or ERROR_RESET_REQUIRED, once a call has said so
}

func newProbe(h *Host, dev nvml.Device) *probe {
	return &probe{host: h, dev: dev, faults: map[string]string{}}
}

// read makes one call. A function that the library lacks and a value that the device lacks both mean "not supported".
// After a call has found the device lost, read makes no more calls, because each could take seconds.
func read[T any](p *probe, field, symbol string, call func() (T, nvml.Return)) Reading[T] {
	if p.lost != nvml.SUCCESS || !p.host.has(symbol) {
		return Reading[T]{}
	}
	v, ret := call()
	switch ret {
	case nvml.SUCCESS:
		return Some(v)
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED, nvml.ERROR_NO_DATA:
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		p.lost = ret
	default:
		p.faults[field] = nvml.Return.Error(ret)
	}
	return Reading[T]{}
}

// number is read for NVML's many integer types.
func number[T ~int | ~int32 | ~uint32 | ~uint64](
	p *probe, field, symbol string, call func() (T, nvml.Return),
) Reading[int64] {
	return then(read(p, field, symbol, call), func(v T) int64 { return int64(v) })
}
