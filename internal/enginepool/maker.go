package enginepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
)

// MakerOptions configure OpenMaker.
type MakerOptions struct {
	State   string        // folder of the program's state, in which a Python may have been installed
	Scratch string        // where engines make their folders; "" means the system's temporary folder
	Threads int           // of an engine on the processor; 0 means all
	Wait    time.Duration // for devices that others hold; 0 means defaultWait
	Host    device.Options
	Logger  *slog.Logger // nil means the default
	Gangs   Gangs        // zero: no engine of this worker runs on several hosts

	// Tests' own. leases is the folder that the host's processes share.
	leases string
	python func(ctx context.Context, more ...setup.Package) (string, error)
	start  func(context.Context, torch.Options) (process, error)
	serve  func(context.Context, torch.Options, torch.Rendezvous) error
}

// defaultWait is below the time that a stage may take, and long enough for another run's update to end.
const defaultWait = 10 * time.Minute

// Maker makes a worker's PyTorch engines, on devices that are leased for the life of an engine, or on the processor of
// a host without a driver. It implements Torch. Close it after its engines.
type Maker struct {
	o       MakerOptions
	host    *device.Host  // nil without a driver
	watch   *device.Watch // nil without a driver
	pool    *lease.Pool   // nil without a driver
	devices int           // number that the worker may use, leased or not
	reason  string        // why there is no device
	warned  sync.Once
}

var _ Torch = (*Maker)(nil)

// OpenMaker looks for devices. A host without a driver, or with a broken one, is not an error: its engines run on the
// processor, and Offer says why.
func OpenMaker(o MakerOptions) (*Maker, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Wait = cmp.Or(o.Wait, defaultWait)
	if o.python == nil {
		o.python = (&python{state: o.State}).path
	}
	if o.start == nil {
		o.start = func(ctx context.Context, t torch.Options) (process, error) { return torch.Open(ctx, t) }
	}
	if o.serve == nil {
		o.serve = torch.Serve
	}
	m := &Maker{o: o}
	host, err := device.Open(o.Host)
	if errors.Is(err, device.ErrNoDriver) {
		m.reason = err.Error()
		return m, nil
	}
	if err == nil {
		m.host = host
		err = m.open()
	}
	if err != nil { // the CPU engine needs no driver
		m.o.Logger.Warn("NVIDIA devices cannot be used", "error", err)
		if closing := m.Close(); closing != nil {
			m.o.Logger.Warn("close NVML", "error", closing)
		}
		return &Maker{o: o, reason: err.Error()}, nil
	}
	return m, nil
}

func (m *Maker) open() (err error) {
	if m.watch, err = m.host.Watch(device.WatchOptions{Log: m.o.Logger}); err != nil {
		return err
	}
	var all []device.Device
	for _, s := range m.watch.Status() {
		all = append(all, s.Device)
	}
	m.devices = len(all)
	options := lease.Options{Dir: m.o.leases, Log: m.o.Logger}
	if value, set := os.LookupEnv(lease.VisibleVariable); set {
		if options.Only, err = lease.Visible(value, all); err != nil {
			return fmt.Errorf("%s: %w", lease.VisibleVariable, err)
		}
		if options.Only == nil {
			options.Only = []string{}
		}
		m.devices = len(options.Only)
	}
	if m.pool, err = lease.Open(m.watch, options); err != nil {
		return err
	}
	if m.devices == 0 {
		m.reason = "the driver lists no device that this worker may use"
	}
	return nil
}

// Watch returns the watch, which metrics read; nil without a driver.
func (m *Maker) Watch() (*device.Watch, *lease.Pool) { return m.watch, m.pool }

// Close ends the watch and releases the remaining leases.
func (m *Maker) Close() error {
	var err error
	if m.pool != nil {
		err = m.pool.Close()
	}
	if m.watch != nil {
		err = errors.Join(err, m.watch.Close())
	}
	if m.host != nil {
		err = errors.Join(err, m.host.Close())
	}
	return err
}

// offer describes the device of an engine with these settings. The error says why there can be none.
func (m *Maker) offer(ctx context.Context, s settings) (gpu bool, on string, err error) {
	if _, err := m.o.python(ctx, s.packages()...); err != nil {
		return false, "", err
	}
	if s.Hosts > 1 && m.o.Gangs.Summon == nil {
		return false, "", fmt.Errorf("hosts: %d wanted, this worker cannot bring others", s.Hosts)
	}
	switch n := m.devices; {
	case n == 0:
		return false, onHosts(s, "processes", fmt.Sprintf("the processor, %d threads: %s", m.threads(), m.reason)), nil
	case n < s.Devices:
		return false, "", fmt.Errorf("devices: %d wanted, this worker has %d", s.Devices, n)
	}
	name := m.watch.Status()[0].Name
	if s.Devices > 1 {
		name = fmt.Sprintf("%d × %s", s.Devices, name)
	}
	return true, onHosts(s, "devices", name), nil
}

// Devices implements Torch. Devices that are not sound do not count.
func (m *Maker) Devices() int {
	if m.pool == nil {
		return 0
	}
	return len(m.pool.Leasable())
}

func (m *Maker) threads() int { return cmp.Or(m.o.Threads, runtime.GOMAXPROCS(0)) }

// options are the options of a process on the leased devices, or on the processor.
func (m *Maker) options(ctx context.Context, s settings, l *lease.Lease) (torch.Options, error) {
	python, err := m.o.python(ctx, s.packages()...)
	if err != nil {
		return torch.Options{}, err
	}
	o := torch.Options{
		Python: python, Ranks: s.Devices, Device: torch.CPU, Dtype: s.Dtype, Deterministic: s.Deterministic,
		Checkpointing: s.Checkpointing, OffloadOptimizer: s.OffloadOptimizer, LoRA: s.LoRA, Dir: m.o.Scratch,
		Logger: m.o.Logger, Estimate: s.Estimate,
		Threads: max(1, m.threads()/max(1, s.Devices)),
	}
	if l != nil {
		o.Device, o.UUIDs = torch.CUDA, l.UUIDs()
	}
	if s.Hosts > 1 {
		o.Hosts, o.Gather = s.Hosts, func(ctx context.Context) (torch.Gang, error) { return m.gather(ctx, s, o) }
	}
	return o, nil
}

// leaseDevices leases devices if the host has any.
func (m *Maker) leaseDevices(ctx context.Context, s settings) (*lease.Lease, error) {
	if m.devices == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.o.Wait, fmt.Errorf("no devices came free in %s", m.o.Wait))
	defer cancel()
	l, err := m.pool.Take(ctx, lease.Request{Devices: max(1, s.Devices), Memory: s.Memory})
	if err != nil {
		return nil, fmt.Errorf("lease %d devices: %w", max(1, s.Devices), err)
	}
	return l, nil
}
