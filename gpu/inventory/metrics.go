package inventory

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
)

// Collector exports the devices to Prometheus: the readings of the last poll, the states, and the leases. A figure that
// a device does not have has no series. Every series of a device has its index and UUID as labels. The collector reads
// a watch and a pool at each scrape. It does not call the driver, so a scrape never hangs in it.
type Collector struct {
	watch  *device.Watch
	pool   *lease.Pool
	driver device.Driver
}

// NewCollector makes a collector. pool may be nil in a process that leases nothing.
func NewCollector(w *device.Watch, pool *lease.Pool) *Collector {
	return &Collector{watch: w, pool: pool, driver: w.Host().Driver()}
}

// Handler serves a collector and the process's own metrics from its own registry.
func Handler(c *Collector) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

var perDevice = []string{"gpu", "uuid"}

func desc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("ropewalk_gpu_"+name, help, slices.Concat(perDevice, more), nil)
}

var (
	info      = desc("info", "1, labelled with what the device is.", "name", "pci", "driver", "cuda")
	state     = desc("state", "1 of the device's state, 0 of the others.", "state")
	reason    = desc("reason", "1 of each finding against the device.", "kind", "state")
	clocks    = desc("clock_reason", "1 of each reason for clocks below the highest, 0 of the others.", "reason")
	throttled = desc("throttled_ratio", "Share of the last ten minutes in which clocks were lowered.", "by")
	xids      = desc("xids_total", "Xids reported since the watch began.", "xid", "consequence")
	leased    = desc("leased", "1 while this process has the device leased.")

	host = func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ropewalk_gpu_"+name, help, nil, nil)
	}
	devices     = host("devices", "Devices that the driver listed when the watch began.")
	eventFaults = host("event_faults_total", "Times that waiting for the driver's events broke.")
	waiting     = host("lease_waiting", "Requests of this process that wait for devices.")
	taken       = host("leases_total", "Leases taken by this process.")
	failed      = host("leases_failed_total", "Leases of this process of which a device failed.")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, state, reason, clocks, throttled, xids, devices, eventFaults} {
		out <- d
	}
	if c.pool != nil {
		for _, d := range []*prometheus.Desc{leased, waiting, taken, failed} {
			out <- d
		}
	}
	for _, f := range figures {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	all := c.watch.Status()
	for _, s := range all {
		c.device(out, s)
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v int) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(v))
	}
	send(devices, prometheus.GaugeValue, len(all))
	send(eventFaults, prometheus.CounterValue, c.watch.EventFaults())
	if c.pool == nil {
		return
	}
	stats := c.pool.Stats()
	send(waiting, prometheus.GaugeValue, stats.Waiting)
	send(taken, prometheus.CounterValue, stats.Taken)
	send(failed, prometheus.CounterValue, stats.Failed)
	for _, s := range all {
		out <- prometheus.MustNewConstMetric(
			leased, prometheus.GaugeValue, boolValue(stats.Leased[s.UUID]), strconv.Itoa(s.Index), s.UUID,
		)
	}
}

func (c *Collector) device(out chan<- prometheus.Metric, s device.Status) {
	index := strconv.Itoa(s.Index)
	gauge := func(d *prometheus.Desc, v float64, more ...string) {
		out <- prometheus.MustNewConstMetric(
			d, prometheus.GaugeValue, v, slices.Concat([]string{index, s.UUID}, more)...,
		)
	}
	gauge(info, 1, s.Name, s.PCI.Bus.Or(""), c.driver.Version, c.driver.CUDA)
	for _, st := range device.States {
		gauge(state, boolValue(s.Health.State == st), string(st))
	}
	for code, n := range s.Xids {
		out <- prometheus.MustNewConstMetric(
			xids, prometheus.CounterValue, float64(n), index, s.UUID, strconv.Itoa(code),
			string(device.XidOf(code).Consequence),
		)
	}
	for i, r := range s.Health.Reasons {
		if !slices.ContainsFunc(
			s.Health.Reasons[:i], func(o device.Reason) bool { return o.Kind == r.Kind && o.State == r.State },
		) {
			gauge(reason, 1, string(r.Kind), string(r.State))
		}
	}
	if s.Lost != "" { // its last figures are old
		return
	}
	if s.Clocks.Reasons.OK {
		for _, r := range device.ClockReasons {
			gauge(clocks, boolValue(slices.Contains(s.Clocks.Reasons.Value, r.Name)), r.Name)
		}
		gauge(throttled, s.ThrottledThermal, "thermal")
		gauge(throttled, s.ThrottledPower, "power")
	}
	for _, f := range figures {
		if r := f.read(s); r.OK {
			out <- prometheus.MustNewConstMetric(f.desc, f.kind, r.Value, index, s.UUID)
		}
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
