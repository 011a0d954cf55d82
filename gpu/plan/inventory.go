package plan

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// Inventory is the hardware that a plan is made for.
type Inventory struct {
	Source string `json:"source"` // where it comes from, in words
	Hosts  []Host `json:"hosts"`
}

// Host is one machine.
type Host struct {
	Name    string   `json:"name"`
	Memory  int64    `json:"memory_bytes,omitempty"` // of the machine, without its devices; 0 = unknown
	Devices []Device `json:"devices"`
}

// Device is one GPU of an inventory.
type Device struct {
	Index     int     `json:"index"`
	Name      string  `json:"name"`
	Memory    int64   `json:"memory_bytes"` // free for a run
	Flops     float64 `json:"peak_flops,omitempty"`
	Bandwidth float64 `json:"bandwidth_bytes_per_second,omitempty"`
	// Unusable says why nothing can be placed on it, or is "".
	Unusable string `json:"unusable,omitempty"`
}

// Devices returns the number of devices of all hosts.
func (i Inventory) Devices() int {
	n := 0
	for _, h := range i.Hosts {
		n += len(h.Devices)
	}
	return n
}

// String describes the inventory in a line.
func (i Inventory) String() string {
	var hosts []string
	for _, h := range i.Hosts {
		text, n := "", 0
		for k, d := range h.Devices {
			n++
			if k+1 == len(h.Devices) || h.Devices[k+1].Name != d.Name || h.Devices[k+1].Memory != d.Memory {
				text += fmt.Sprintf(" + %d × %s of %s", n, d.Name, size(d.Memory))
				n = 0
			}
		}
		if text == "" {
			text = " + no devices"
		}
		hosts = append(hosts, h.Name+": "+strings.TrimPrefix(text, " + "))
	}
	if len(hosts) == 0 {
		return i.Source
	}
	return strings.Join(hosts, "; ") + " (" + i.Source + ")"
}

var countForm = regexp.MustCompile(`^(.+?)x([0-9]{1,3})$`)

// mostDevices bounds what a declared inventory may hold.
const mostDevices = 4096

// Declared reads an inventory as a user declares it: PARTxN for a host, such as h200x8; parts of one host joined by a
// plus, h100x4+l40sx2; hosts separated by commas, h200x8,h200x8; or the path of a file (see readFile).
func Declared(text string) (Inventory, error) {
	if strings.ContainsAny(text, "/\\") || filepath.Ext(text) == ".yaml" || filepath.Ext(text) == ".yml" ||
		filepath.Ext(text) == ".json" {
		return readFile(text)
	}
	out := Inventory{Source: "declared: " + text}
	for i, host := range strings.Split(text, ",") {
		h := Host{Name: hostName(i)}
		for _, some := range strings.Split(host, "+") {
			found := countForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(some)))
			if found == nil {
				return Inventory{}, fmt.Errorf("%q is neither PARTxN, such as h200x8, nor a file (*.yaml, *.json); "+
					"parts are %s", some, partSlugs())
			}
			p, ok := partBySlug(found[1])
			if !ok {
				return Inventory{}, fmt.Errorf("there is no part %q: name one of %s, or a file that states "+
					"memory_gib, tflops and bandwidth_gbs", found[1], partSlugs())
			}
			n, _ := strconv.Atoi(found[2])
			if n < 1 {
				return Inventory{}, fmt.Errorf("%q declares no device", some)
			}
			if p.Memory == 0 {
				return Inventory{}, fmt.Errorf("the memory of %s is not known here: declare it in a file (memory_gib)",
					found[1])
			}
			h.add(n, Device{Name: p.Name, Memory: p.Memory, Flops: p.Flops, Bandwidth: p.Bandwidth})
		}
		out.Hosts = append(out.Hosts, h)
	}
	return out, out.check()
}

func hostName(i int) string { return fmt.Sprintf("host %d", i+1) }

func (h *Host) add(n int, d Device) {
	for range min(n, mostDevices+1) {
		d.Index = len(h.Devices)
		h.Devices = append(h.Devices, d)
	}
}

func (i Inventory) check() error {
	if n := i.Devices(); n > mostDevices {
		return fmt.Errorf("the inventory declares more than %d devices", mostDevices)
	}
	return nil
}

// slug is how a part is written in a declared inventory: small letters and digits alone.
func slug(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

func partBySlug(text string) (Part, bool) {
	for _, p := range parts {
		if slug(p.Name) == slug(text) {
			return p, true
		}
	}
	return Part{}, false
}

func partSlugs() string {
	var all []string
	for _, p := range parts {
		all = append(all, slug(p.Name))
	}
	return strings.Join(all, ", ")
}

// declaredFile is a file of an inventory: hosts, or what `ropewalk gpu --json` prints of one host.
type declaredFile struct {
	Hosts []struct {
		Name    string           `yaml:"name"`
		Memory  float64          `yaml:"memory_gib"`
		Devices []declaredDevice `yaml:"devices"`
	} `yaml:"hosts"`
	Devices []struct {
		Name   string `yaml:"name"`
		Memory struct {
			Total *int64 `yaml:"total_bytes"`
			Free  *int64 `yaml:"free_bytes"`
		} `yaml:"memory"`
	} `yaml:"devices"`
	Driver any            `yaml:"driver"`
	Others map[string]any `yaml:",inline"`
}

type declaredDevice struct {
	Name      string         `yaml:"name"`
	Count     *int           `yaml:"count"`
	Memory    float64        `yaml:"memory_gib"`
	Flops     float64        `yaml:"tflops"`
	Bandwidth float64        `yaml:"bandwidth_gbs"`
	Others    map[string]any `yaml:",inline"`
}

const mostFile = 16 << 20

// readFile reads an inventory of hosts, in YAML or JSON:
//
//	hosts:
//	  - name: a
//	    memory_gib: 1024                     # of the machine; may be absent
//	    devices:
//	      - {name: NVIDIA H200, count: 8}    # a name that holds a part's name brings its data sheet
//	      - {name: prototype, memory_gib: 48, tflops: 200, bandwidth_gbs: 900}
//
// or the output of `ropewalk gpu --json` on another machine.
func readFile(path string) (Inventory, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Inventory{}, fmt.Errorf("read the inventory: %w", err)
	}
	if info.Size() > mostFile {
		return Inventory{}, fmt.Errorf("read the inventory %s: it has %d bytes, more than %d", path, info.Size(),
			mostFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Inventory{}, fmt.Errorf("read the inventory: %w", err)
	}
	out, err := parseFile(text)
	if err != nil {
		return Inventory{}, fmt.Errorf("inventory %s: %w", path, err)
	}
	out.Source = "declared: " + path
	return out, nil
}

func parseFile(text []byte) (out Inventory, err error) {
	var f declaredFile
	if err := yaml.Unmarshal(text, &f); err != nil {
		return out, errors.New(badinput.YAML(err.Error()))
	}
	switch {
	case len(f.Hosts) > 0 && len(f.Devices) > 0:
		return out, fmt.Errorf("it has hosts, and devices outside of them")
	case len(f.Hosts) == 0 && len(f.Devices) == 0:
		return out, fmt.Errorf("it has neither hosts nor the devices that `ropewalk gpu --json` prints")
	case len(f.Devices) > 0:
		out.Hosts, err = f.reported()
	default:
		out.Hosts, err = f.declared()
	}
	if err != nil {
		return out, err
	}
	return out, out.check()
}

// reported reads what `ropewalk gpu --json` printed.
func (f declaredFile) reported() ([]Host, error) {
	h := Host{Name: hostName(0)}
	for i, d := range f.Devices {
		p, _ := PartOf(d.Name)
		memory := d.Memory.Free
		if memory == nil {
			memory = d.Memory.Total
		}
		if memory == nil || *memory < 1 {
			return nil, fmt.Errorf("devices[%d]: %s states no memory (memory.free_bytes, memory.total_bytes)", i,
				d.Name)
		}
		h.add(1, Device{Name: d.Name, Memory: *memory, Flops: p.Flops, Bandwidth: p.Bandwidth})
	}
	return []Host{h}, nil
}

func (f declaredFile) declared() (out []Host, err error) {
	for name := range f.Others {
		return nil, fmt.Errorf("%s is unknown; there is hosts", name)
	}
	for i, host := range f.Hosts {
		h := Host{Name: host.Name}
		if h.Name == "" {
			h.Name = hostName(i)
		}
		if h.Memory, err = bytesOf(host.Memory); err != nil {
			return nil, fmt.Errorf("hosts[%d].memory_gib %w", i, err)
		}
		for k, d := range host.Devices {
			device, n, err := d.device()
			if err != nil {
				return nil, fmt.Errorf("hosts[%d].devices[%d]: %w", i, k, err)
			}
			h.add(n, device)
		}
		out = append(out, h)
	}
	return out, nil
}

func (d declaredDevice) device() (out Device, count int, err error) {
	for name := range d.Others {
		return out, 0, fmt.Errorf("%s is unknown; there are name, count, memory_gib, tflops and bandwidth_gbs", name)
	}
	if d.Name == "" {
		return out, 0, fmt.Errorf("name is absent")
	}
	count = 1
	if d.Count != nil {
		count = *d.Count
	}
	if count < 1 || count > mostDevices {
		return out, 0, fmt.Errorf("count must be from 1 to %d, got %d", mostDevices, count)
	}
	p, ok := PartOf(d.Name)
	if !ok {
		p, _ = partBySlug(d.Name)
	}
	out = Device{Name: d.Name, Memory: p.Memory, Flops: p.Flops, Bandwidth: p.Bandwidth}
	memory, err := bytesOf(d.Memory)
	if err != nil {
		return out, 0, fmt.Errorf("memory_gib %w", err)
	}
	if memory > 0 {
		out.Memory = memory
	}
	if out.Memory == 0 {
		return out, 0, fmt.Errorf("%s: memory_gib is absent, and the part is unknown; there are %s", d.Name,
			partSlugs())
	}
	for _, rate := range []struct {
		name  string
		value float64
		unit  float64
		at    *float64
	}{{"tflops", d.Flops, 1e12, &out.Flops}, {"bandwidth_gbs", d.Bandwidth, 1e9, &out.Bandwidth}} {
		if !(rate.value >= 0) || math.IsInf(rate.value, 0) {
			return out, 0, fmt.Errorf("%s must be positive, got %v", rate.name, rate.value)
		}
		if rate.value > 0 {
			*rate.at = rate.value * rate.unit
		}
	}
	return out, count, nil
}

// bytesOf turns GiB into bytes.
func bytesOf(n float64) (int64, error) {
	if !(n >= 0 && n <= 1<<20) {
		return 0, fmt.Errorf("must be from 0 to %d, got %v", 1<<20, n)
	}
	return int64(n * gib), nil
}
