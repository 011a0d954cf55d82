// Package devicetest replaces NVML in tests. Devices are struct literals. A test changes their readings and sends their
// events. The package also has a clock that the test advances.
package devicetest

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// Library is a fake NVML for the given devices. Once it is in use, change its fields and those of its devices only
// inside Alter.
type Library struct {
	mock.Interface
	GPUs []*GPU
	// Missing holds the functions (nvml…) that this driver's library lacks.
	Missing map[string]bool
	// NoDriver is the result of Init. The default is SUCCESS.
	NoDriver nvml.Return

	mu     sync.Mutex
	events chan nvml.EventData
	broken chan nvml.Return
	sets   int // event sets made
	freed  int
}

// New makes a library with these devices.
func New(gpus ...*GPU) *Library {
	l := &Library{GPUs: gpus, events: make(chan nvml.EventData, 64), broken: make(chan nvml.Return, 64)}
	for i, g := range gpus {
		g.make(l, i)
	}
	l.InitFunc = func() nvml.Return { return l.NoDriver }
	l.ShutdownFunc = func() nvml.Return { return nvml.SUCCESS }
	l.ExtensionsFunc = func() nvml.ExtendedInterface { return symbols{l} }
	l.SystemGetDriverVersionFunc = func() (string, nvml.Return) { return "580.95.05", nvml.SUCCESS }
	l.SystemGetNVMLVersionFunc = func() (string, nvml.Return) { return "13.580.95.05", nvml.SUCCESS }
	l.SystemGetCudaDriverVersionFunc = func() (int, nvml.Return) { return 13000, nvml.SUCCESS }
	l.SystemGetProcessNameFunc = func(int) (string, nvml.Return) { return "python3", nvml.SUCCESS }
	l.DeviceGetCountFunc = func() (int, nvml.Return) { return len(l.GPUs), nvml.SUCCESS }
	l.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i < 0 || i >= len(l.GPUs) {
			return nil, nvml.ERROR_INVALID_ARGUMENT
		}
		return l.handle(l.GPUs[i])
	}
	l.DeviceGetHandleByUUIDFunc = func(uuid string) (nvml.Device, nvml.Return) {
		for _, g := range l.GPUs {
			if g.UUID == uuid {
				return l.handle(g)
			}
		}
		return nil, nvml.ERROR_NOT_FOUND
	}
	l.EventSetCreateFunc = l.newSet
	Rest(&l.Interface)
	return l
}

// Alter changes devices while they are in use.
func (l *Library) Alter(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Xid makes a device report an Xid.
func (l *Library) Xid(gpu, code int) { l.Send(gpu, nvml.EventTypeXidCriticalError, uint64(code)) }

// Send sends any event.
func (l *Library) Send(gpu int, kind, data uint64) {
	l.events <- nvml.EventData{Device: l.GPUs[gpu].device, EventType: kind, EventData: data}
}

// Break makes the next wait for events fail.
func (l *Library) Break(with nvml.Return) { l.broken <- with }

// Sets counts event sets made and freed.
func (l *Library) Sets() (made, freed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sets, l.freed
}

// handle returns a device's handle, unless the device no longer has one.
func (l *Library) handle(g *GPU) (nvml.Device, nvml.Return) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.Gone {
		return nil, nvml.ERROR_NOT_FOUND
	}
	if g.Unknown["GetHandle"] {
		return nil, nvml.ERROR_UNKNOWN
	}
	return g.device, nvml.SUCCESS
}

// shortWait replaces the wait that is asked for, so that time-outs come often and closing is quick.
const shortWait = 2 * time.Millisecond

func (l *Library) newSet() (nvml.EventSet, nvml.Return) {
	l.Alter(func() { l.sets++ })
	set := &mock.EventSet{}
	set.FreeFunc = func() nvml.Return {
		l.Alter(func() { l.freed++ })
		return nvml.SUCCESS
	}
	set.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) {
		select {
		case e := <-l.events:
			return e, nvml.SUCCESS
		case ret := <-l.broken:
			return nvml.EventData{}, ret
		case <-time.After(shortWait):
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}
	return set, nvml.SUCCESS
}

// symbols answers for the functions that the library has.
type symbols struct{ l *Library }

func (s symbols) LookupSymbol(name string) error {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.l.Missing[name] {
		return errors.New("undefined symbol: " + name)
	}
	return nil
}

// DGX is go-nvml's own DGX A100 of eight devices, with the answer "not supported" to what it does not know.
func DGX() *dgxa100.Server {
	dgx := dgxa100.New()
	Rest(&dgx.Interface)
	for _, d := range dgx.Devices {
		a100 := d.(*dgxa100.Device)
		a100.MemoryInfo.Free = a100.MemoryInfo.Total
		Rest(&a100.Device)
	}
	return dgx
}

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
