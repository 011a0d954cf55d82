package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is a place with an address of its own, in which processes run.
type Machine struct {
	Name, IP string
	enter    []string // precedes the lines of its commands
	port     string   // of the switch; "" if it has none
}

// Here is this machine itself.
func Here() *Machine { return &Machine{Name: "localhost", IP: "127.0.0.1"} }

// Command returns a command that runs on the machine. The process keeps its id.
func (m *Machine) Command(line ...string) *exec.Cmd {
	line = append(append([]string(nil), m.enter...), line...)
	return exec.Command(line[0], line[1:]...)
}

// Network connects machines. The switch is in a namespace of its own, so that this machine's firewall and addresses
// play no part but for one interface, through which the test reaches the machines.
type Network struct {
	name     string // of the switch's namespace and of the outer interface
	subnet   string // "198.18.N."
	machines []*Machine
}

// NewNetwork makes a network, which needs root and the program ip. Its addresses are of the range that is reserved for
// tests of networks (RFC 2544).
func NewNetwork() (*Network, error) {
	if err := sweep(); err != nil {
		return nil, err
	}
	subnet, err := freeSubnet()
	if err != nil {
		return nil, err
	}
	n := &Network{name: fmt.Sprintf("rw%d", os.Getpid()), subnet: subnet}
	err = run(
		"ip netns add "+n.name,
		"ip -n "+n.name+" link add switch type bridge",
		"ip -n "+n.name+" link set switch up",
		"ip link add "+n.name+" type veth peer name outside netns "+n.name,
		"ip -n "+n.name+" link set outside master switch up",
		"ip address add "+n.subnet+"1/24 dev "+n.name,
		"ip link set "+n.name+" up",
	)
	if err != nil {
		_ = n.Close()
		return nil, err
	}
	return n, nil
}

// spaceOf matches the names of a network's namespaces, by the id of the process that made it.
var spaceOf = regexp.MustCompile(`(?m)^rw([0-9]+)(-\S+)?`)

// sweep removes the networks of processes that have ended without Close. The outer interface goes with its peer.
func sweep() error {
	listed, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return fmt.Errorf("list network namespaces: %w", err)
	}
	for _, m := range spaceOf.FindAllStringSubmatch(string(listed), -1) {
		if pid, err := strconv.Atoi(m[1]); err == nil && syscall.Kill(pid, 0) != nil {
			if err := run("ip netns delete " + m[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeSubnet finds a subnet of which this machine has no address.
func freeSubnet() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list this machine's addresses: %w", err)
	}
	for i := range 255 {
		_, subnet, _ := net.ParseCIDR(fmt.Sprintf("198.18.%d.0/24", (os.Getpid()+i)%255)) // is well formed
		used := false
		for _, a := range addresses {
			ip, _, err := net.ParseCIDR(a.String())
			used = used || err == nil && subnet.Contains(ip)
		}
		if !used {
			return strings.TrimSuffix(subnet.IP.String(), "0"), nil
		}
	}
	return "", fmt.Errorf("this machine has an address of every subnet of 198.18.0.0/16")
}

// run runs commands until one fails.
func run(lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
	}
	return nil
}

// Machine adds a machine.
func (n *Network) Machine(name string) (*Machine, error) {
	space := n.name + "-" + name
	m := &Machine{Name: name, IP: fmt.Sprintf("%s%d", n.subnet, len(n.machines)+2),
		enter: []string{"ip", "netns", "exec", space}, port: fmt.Sprintf("port%d", len(n.machines)+2)}
	n.machines = append(n.machines, m)
	return m, run(
		"ip netns add "+space,
		"ip -n "+n.name+" link add "+m.port+" type veth peer name eth0 netns "+space,
		"ip -n "+n.name+" link set "+m.port+" master switch up",
		"ip -n "+space+" link set lo up",
		"ip -n "+space+" address add "+m.IP+"/24 dev eth0",
		"ip -n "+space+" link set eth0 up",
	)
}

// Cut cuts a machine off: nothing that it sends arrives, and it receives nothing. No connection is closed.
func (n *Network) Cut(m *Machine) error {
	return run("ip -n " + n.name + " link set " + m.port + " down")
}

// Join ends a cut.
func (n *Network) Join(m *Machine) error {
	return run("ip -n " + n.name + " link set " + m.port + " up")
}

// Close removes the machines and the switch. Their processes must have ended.
func (n *Network) Close() error {
	var errs []error
	for _, m := range n.machines {
		errs = append(errs, run("ip netns delete "+n.name+"-"+m.Name))
	}
	if _, err := net.InterfaceByName(n.name); err == nil {
		errs = append(errs, run("ip link delete "+n.name))
	}
	return errors.Join(append(errs, run("ip netns delete "+n.name))...)
}

// Answers waits until something accepts connections at an address.
func Answers(address string, within time.Duration) error {
	end := time.Now().Add(within)
	for {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("nothing answers at %s after %s: %w", address, within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
