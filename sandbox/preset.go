package sandbox

import (
	"fmt"
	"strings"
	"time"
)

// Preset holds the limits of a call, and how a client handles breakage, as a published system sets them. If a system
// limits only wall-clock time, its limit becomes the CPU limit here, and the wall limit is ten times that, so that no
// verdict depends on load (Limits).
type Preset struct {
	Name      string
	Limits    Limits
	QueueLife time.Duration // how long a call may wait in a service before it fails as queue_timeout
	Retries   int           // further attempts after one that ended in breakage
	Backoff   time.Duration // before the first of these; doubles each time
	Resend    bool          // also retry after queue_timeout
	Batch     int           // most calls in one request
}

// DefaultPreset is used if no preset is named. Its retries and backoff are those of rStar2-Agent.
var DefaultPreset = Preset{
	Name: "default", Limits: DefaultLimits, QueueLife: 2 * time.Minute,
	Retries: 4, Backoff: 500 * time.Millisecond, Resend: true, Batch: 64,
}

// Presets returns the presets of published systems.
func Presets() []Preset {
	return []Preset{
		// rStar2-Agent. Its paper sends at most 64 calls at a time; its release retries four times, after 0.5·2^(n−1)
		// s, and also retries after queue_timeout. Its server, code-judge, limits a call to 10 s and 256 MB, plus 128
		// MB for the interpreter, and keeps the calls of a long batch for an hour.
		{
			Name: "rstar2",
			Limits: Limits{CPU: 10 * time.Second, Wall: 100 * time.Second, MemoryBytes: 384 << 20,
				OutputBytes: 64 << 10},
			QueueLife: time.Hour, Retries: 4, Backoff: 500 * time.Millisecond, Resend: true, Batch: 64,
		},
		// SimpleTIR. It runs code for 3 s (SandboxFusion's run_timeout), tries a call twice and gives its service 30 s
		// for it. It has no memory limit, so SPEAR's 1 GiB is used.
		{
			Name: "simpletir",
			Limits: Limits{CPU: 3 * time.Second, Wall: 30 * time.Second, MemoryBytes: 1 << 30,
				OutputBytes: 64 << 10},
			QueueLife: 30 * time.Second, Retries: 1, Backoff: 500 * time.Millisecond, Resend: true, Batch: 64,
		},
		// SPEAR. Its SandboxFusion tool has default_timeout 30, memory_limit_mb 1024 and 128 calls at once. Its client
		// tries three times, at first one second apart.
		{
			Name: "spear",
			Limits: Limits{CPU: 30 * time.Second, Wall: 300 * time.Second, MemoryBytes: 1 << 30,
				OutputBytes: 64 << 10},
			QueueLife: 2 * time.Minute, Retries: 2, Backoff: time.Second, Resend: true, Batch: 64,
		},
	}
}

// PresetOf returns the preset with a name; "" is the default preset.
func PresetOf(name string) (Preset, error) {
	if name == "" || name == DefaultPreset.Name {
		return DefaultPreset, nil
	}
	known := []string{DefaultPreset.Name}
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	return Preset{}, fmt.Errorf("preset %q is not one of %s", name, strings.Join(known, ", "))
}

// Over returns l with the preset's limits for those that l does not set. A wall limit that l does not set is never
// below ten times its CPU limit.
func (p Preset) Over(l Limits) Limits {
	set := func(to *int64, from int64) {
		if *to == 0 {
			*to = from
		}
	}
	if l.Wall == 0 && l.CPU == 0 {
		l.Wall = p.Limits.Wall
	}
	set((*int64)(&l.CPU), int64(p.Limits.CPU))
	set(&l.MemoryBytes, p.Limits.MemoryBytes)
	set(&l.FileBytes, p.Limits.FileBytes)
	if l.OutputBytes == 0 {
		l.OutputBytes = p.Limits.OutputBytes
	}
	if l.Processes == 0 {
		l.Processes = p.Limits.Processes
	}
	return l.OrDefault()
}
