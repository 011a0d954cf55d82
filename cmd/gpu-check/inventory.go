package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/metrics"
)

// inventoryFigures are what NVML reports about the devices, and the metrics that follow from it.
type inventoryFigures struct {
	device.Inventory
	Health  []device.Health `json:"health"` // by device
	Metrics []string        `json:"metrics"`
}

// inventory asks the real driver for everything, and scrapes the metrics once.
func inventory(_ context.Context, l *lab) (figures, error) {
	if l.hostErr != nil {
		return nil, l.hostErr
	}
	inv, err := l.host.Inventory()
	if err != nil {
		return nil, err
	}
	out := &inventoryFigures{Inventory: inv}
	w, err := l.host.Watch(device.WatchOptions{Log: l.log})
	if err != nil {
		return out, err
	}
	defer w.Close()
	for _, s := range w.Status() {
		out.Health = append(out.Health, s.Health)
	}
	answer := httptest.NewRecorder()
	metrics.Handler(metrics.New(w, nil)).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Result().Body)
	if err != nil {
		return out, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "ropewalk_gpu_") {
			out.Metrics = append(out.Metrics, strings.TrimSpace(line))
		}
	}
	if len(inv.Devices) == 0 || len(out.Metrics) == 0 {
		return out, fmt.Errorf("%d devices and %d metrics: %s", len(inv.Devices), len(out.Metrics), text)
	}
	return out, nil
}

func (f *inventoryFigures) rows() []row {
	out := []row{{what: "driver", value: fmt.Sprintf("%s, CUDA %s", f.Driver.Version, f.Driver.CUDA)}}
	for i, d := range f.Devices {
		name := fmt.Sprintf("device %d", d.Index)
		out = append(out,
			row{what: name, value: fmt.Sprintf("%s, %s", d.Name, d.UUID)},
			row{what: name + ": memory", value: gib(d.Memory.Total.Or(0)) + ", used " + gib(d.Memory.Used.Or(0))},
			row{what: name + ": temperature, power",
				value: fmt.Sprintf("%s °C, %s of %s W", d.Temperature.GPU, d.Power.Draw, d.Power.Limit)})
		if i < len(f.Health) {
			out = append(out, row{what: name + ": health", value: f.Health[i].String()})
		}
		for field, fault := range d.Faults {
			out = append(out, row{what: name + ": " + field, value: "cannot be read: " + fault})
		}
	}
	return append(out, row{what: "metrics", value: fmt.Sprintf("%d series", len(f.Metrics))})
}
