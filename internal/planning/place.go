package planning

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
)

// Placed is what one device of the inventory holds.
type Placed struct {
	Host   string        `json:"host"`
	Device int           `json:"device"` // index on the host
	Name   string        `json:"name"`
	What   string        `json:"what"`
	Need   int64         `json:"need_bytes"` // 0 if it is not known
	Memory int64         `json:"memory_bytes"`
	Server *ServerMemory `json:"server,omitempty"`
}

// served is a server that was placed on devices.
type served struct {
	server  servers.Server
	host    string
	devices []int // indices on the host; none if the server is elsewhere, or on a processor
	memory  ServerMemory
	speed   plan.Device
}

// placing puts consumers on devices, in order, each on the first free devices of its host.
type placing struct {
	Input
	plan   *Plan
	taken  map[[2]int]bool // host, device
	engine []plan.Device   // the engine's, over all hosts
	served []served
}

// note adds a note.
func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// refuse adds a refusal.
func (p *Plan) refuse(format string, args ...any) {
	p.Refused = append(p.Refused, fmt.Sprintf(format, args...))
}

func (p *placing) place() {
	p.taken = map[[2]int]bool{}
	if p.Inventory.Devices() == 0 && p.needsDevices() {
		p.plan.note("no device is known here: --inventory PARTxN, such as h200x8, or a file places the run on devices")
	} else if engines.Named(p.Kind).Devices && p.Inventory.Devices() > 0 {
		p.placeEngine()
	}
	if engines.Named(p.Kind).Shared {
		p.fitsProcessor()
	}
	for _, s := range p.Recipe.Engine.Servers {
		p.placeServer(s)
	}
}

// needsDevices reports whether anything of the run is planned on GPUs.
func (p *placing) needsDevices() bool {
	return engines.Named(p.Kind).Devices || slices.ContainsFunc(p.Recipe.Engine.Servers, onDevices)
}

// onDevices reports whether a kind of server is planned on GPUs. Ours and llama-server are planned on processors;
// servers of kind openai are anywhere.
func onDevices(s servers.Server) bool {
	return s.Kind == servers.KindVLLM || s.Kind == servers.KindSGLang
}

// fitsProcessor refuses a model of the CPU engine that the machine's memory cannot hold.
func (p *placing) fitsProcessor() {
	if len(p.Inventory.Hosts) == 0 || p.plan.Memory == nil {
		return
	}
	h, need := p.Inventory.Hosts[0], p.plan.Memory.Total
	if h.Memory == 0 || need <= h.Memory {
		return
	}
	if text := Exceeds(p.Recipe, *p.Model, p.Threads, h.Memory); text != "" {
		p.plan.refuse("%s: %s; %s", h.Name, text, p.remedies(h.Memory))
		return
	}
	p.plan.note("the worker may run out of memory: micro-batches of %d tokens take %s by estimate, and %s has %s; %s",
		BatchTokens(p.Recipe), Size(need), h.Name, Size(h.Memory), p.remedies(h.Memory))
}

// Exceeds says why the CPU engine cannot run a recipe in memory of so many bytes, or returns "". It counts a
// micro-batch of one row, the smallest that there can be.
func Exceeds(r *recipes.Recipe, model plan.Model, threads int, memory int64) string {
	least := *r
	least.Optimizer.MicrobatchTokens = 1
	m := engineMemory(&least, model, engines.Usual(false).Name, threads)
	if m.Total <= memory {
		return ""
	}
	return fmt.Sprintf("out of memory, by estimate: the CPU engine takes %s with %d threads and one row at a time "+
		"(%s), and the machine has %s", Size(m.Total), threads, m, Size(memory))
}

// placeEngine puts the engine's ranks on the first hosts that have enough free devices.
func (p *placing) placeEngine() {
	e, need := p.Recipe.Engine, int64(0)
	if p.plan.Memory != nil {
		need = p.plan.Memory.Total
	}
	each, hosts := max(1, e.Devices), max(1, e.Hosts)
	placed, small := 0, int64(0)
	for h := range p.Inventory.Hosts {
		if placed == hosts {
			break
		}
		var free []int
		for _, d := range p.free(h) {
			if m := p.Inventory.Hosts[h].Devices[d].Memory; m >= need {
				free = append(free, d)
			} else {
				small = max(small, m)
			}
		}
		if len(free) < each {
			continue
		}
		for i, d := range free[:each] {
			what := "engine"
			if each*hosts > 1 {
				what = fmt.Sprintf("engine, rank %d of %d", placed*each+i, each*hosts)
			}
			p.put(h, d, what, need, nil)
			p.engine = append(p.engine, p.Inventory.Hosts[h].Devices[d])
		}
		placed++
	}
	switch {
	case placed == hosts:
	case small > 0 && p.enough(each, hosts):
		p.plan.refuse("out of memory, by estimate: the engine needs %s free on each of its devices (%s), and the "+
			"largest of those that are too small has %s; %s", Size(need), p.plan.Memory, Size(small), p.remedies(small))
	default:
		p.plan.refuse("the engine needs %d devices on each of %d hosts (engine.devices, engine.hosts), and the "+
			"inventory is %s: declare more devices, or lower the two", each, hosts, p.Inventory)
	}
}

// enough reports whether the inventory has as many devices as the engine needs, of any size.
func (p *placing) enough(each, hosts int) bool {
	n := 0
	for h := range p.Inventory.Hosts {
		if len(p.free(h)) >= each {
			n++
		}
	}
	return n >= hosts
}

// free returns the indices of a host's devices that can be used and hold nothing yet.
func (p *placing) free(h int) (out []int) {
	for i, d := range p.Inventory.Hosts[h].Devices {
		if !p.taken[[2]int{h, i}] && d.Unusable == "" {
			out = append(out, i)
		}
	}
	return out
}

func (p *placing) put(h, d int, what string, need int64, s *ServerMemory) {
	p.taken[[2]int{h, d}] = true
	host := p.Inventory.Hosts[h]
	p.plan.Placement = append(p.plan.Placement, Placed{Host: host.Name, Device: host.Devices[d].Index,
		Name: host.Devices[d].Name, What: what, Need: need, Memory: host.Devices[d].Memory, Server: s})
}

// placeServer puts a server on as few devices of its host as its weights and one row need: 1, 2, 4 or 8.
func (p *placing) placeServer(s servers.Server) {
	h, here := p.hostOf(s)
	if !onDevices(s) || !here || p.Inventory.Devices() == 0 {
		p.served = append(p.served, served{server: s, host: addressOf(s)})
		return
	}
	free := p.free(h)
	name := p.Inventory.Hosts[h].Name
	if len(free) == 0 {
		p.plan.refuse("server %s: %s has no free device left: declare more devices, or name fewer servers or "+
			"engine.devices", s.Name(), name)
		return
	}
	if p.Model == nil {
		p.put(h, free[0], "server "+s.Name(), 0, nil)
		p.served = append(p.served, served{server: s, host: name, devices: free[:1],
			speed: p.Inventory.Hosts[h].Devices[free[0]]})
		return
	}
	longest := longestRow(p.Recipe)
	for n := 1; n <= len(free) && n <= 8 && p.Model.Heads%n == 0; n *= 2 {
		device := p.smallest(h, free[:n])
		m := serverMemory(s, *p.Model, longest, n, device.Memory)
		if m.Rows < 1 {
			continue
		}
		for _, d := range free[:n] {
			p.put(h, d, "server "+s.Name(), int64(serverShare*float64(device.Memory)), &m)
		}
		p.served = append(p.served, served{server: s, host: name, devices: free[:n], memory: m, speed: device})
		return
	}
	device := p.Inventory.Hosts[h].Devices[free[0]]
	m := serverMemory(s, *p.Model, longest, 1, device.Memory)
	p.plan.refuse("out of memory, by estimate: server %s: weights of %s, a workspace of %s and one row of %d tokens "+
		"(%s of keys and values) do not fit nine tenths of %s, nor of the %d free devices together: use "+
		"larger devices, more of them, a smaller rollout.max_tokens, or dtype: bfloat16", s.Name(), Size(m.Weights),
		Size(m.Workspace),
		longest, Size(int64(longest)*p.Model.CacheBytes(serverWidth(s))), Size(device.Memory), len(free))
}

func (p *placing) smallest(h int, devices []int) plan.Device {
	all := p.Inventory.Hosts[h].Devices
	return all[slices.MinFunc(devices, func(a, b int) int { return cmp.Compare(all[a].Memory, all[b].Memory) })]
}

// hostOf returns the host of the inventory that a server's address names: a loopback address means the first one.
func (p *placing) hostOf(s servers.Server) (host int, ok bool) {
	name := addressOf(s)
	if name == "localhost" || net.ParseIP(name).IsLoopback() {
		return 0, len(p.Inventory.Hosts) > 0
	}
	host = slices.IndexFunc(p.Inventory.Hosts, func(h plan.Host) bool { return strings.EqualFold(h.Name, name) })
	return host, host >= 0
}

// addressOf is the host part of a server's address; the address itself if it holds references.
func addressOf(s servers.Server) string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Hostname() == "" {
		return s.URL
	}
	return u.Hostname()
}
