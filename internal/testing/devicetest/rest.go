package devicetest

import (
	"reflect"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Rest gives every function that a mock of go-nvml lacks (they panic otherwise) the answer "not supported".
func Rest(mock any) {
	v := reflect.ValueOf(mock).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Func || !f.CanSet() || !f.IsNil() {
			continue
		}
		kind := f.Type()
		f.Set(reflect.MakeFunc(kind, func([]reflect.Value) []reflect.Value { return unsupported(kind) }))
	}
}

func unsupported(kind reflect.Type) []reflect.Value {
	out := make([]reflect.Value, kind.NumOut())
	for i := range out {
		out[i] = reflect.Zero(kind.Out(i))
		if kind.Out(i) == reflect.TypeFor[nvml.Return]() {
			out[i] = reflect.ValueOf(nvml.ERROR_NOT_SUPPORTED)
		}
	}
	return out
}
