package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/device"
	gpumetrics "github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// inventory asks the real driver for everything that NVML reports about the devices, and scrapes the metrics once.
func inventory(_ context.Context, l *lab, r *bench.Report) error {
	if l.hostErr != nil {
		return l.hostErr
	}
	inv, err := l.host.Inventory()
	if err != nil {
		return err
	}
	r.Note("driver", "%s, CUDA %s", inv.Driver.Version, inv.Driver.CUDA)
	w, err := l.host.Watch(device.WatchOptions{Log: l.log})
	if err != nil {
		return err
	}
	defer w.Close()
	health := w.Status()
	for i, d := range inv.Devices {
		name := fmt.Sprintf("device %d", d.Index)
		r.Note(name, "%s, %s; %s °C, %s of %s W", d.Name, d.UUID, d.Temperature.GPU, d.Power.Draw, d.Power.Limit)
		r.Add(name+": memory", bench.Of("GiB", gib(d.Memory.Total.Or(0))), bench.Of("used", gib(d.Memory.Used.Or(0))))
		if i < len(health) {
			r.Note(name+": health", "%s", health[i].Health)
		}
		for field, fault := range d.Faults {
			r.Note(name+": "+field, "cannot be read: %s", fault)
		}
	}
	answer := httptest.NewRecorder()
	gpumetrics.Handler(gpumetrics.NewCollector(w, nil)).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Result().Body)
	if err != nil {
		return err
	}
	series := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "ropewalk_gpu_") {
			series++
		}
	}
	r.Add("metrics", bench.Of("series", float64(series)))
	if len(inv.Devices) == 0 || series == 0 {
		return fmt.Errorf("%d devices and %d metrics: %s", len(inv.Devices), series, text)
	}
	return nil
}
