package gang

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
)

// Encryption says what encrypts the tensors that ranks of several hosts exchange. NCCL and Gloo cannot. The hosts of a
// gang must agree on it. "" means WireGuard.
type Encryption string

const (
	// WireGuard: this host's address is that of a WireGuard interface, and the way to the other hosts leads through
	// this interface. Hosts on loopback are one machine, and need no encryption.
	WireGuard Encryption = "wireguard"
	// Network: the network encrypts what crosses it, for example by IPsec or by the plugin of a Kubernetes cluster. A
	// host cannot check this.
	Network Encryption = "network"
	// Plain: nothing encrypts tensors.
	Plain Encryption = "none"
)

// Encryptions are all kinds.
func Encryptions() []Encryption { return []Encryption{WireGuard, Network, Plain} }

// String implements fmt.Stringer.
func (e Encryption) String() string {
	if e == "" {
		return string(WireGuard)
	}
	return string(e)
}

// Link is the network interface that has a host's address.
type Link struct {
	Name    string // of the interface
	Address string // the IP address
	// Encrypted: the interface is WireGuard's, and must carry everything that hosts exchange.
	Encrypted bool
}

// Link returns the interface of this host's address. It returns an error if this host has no such interface, or if
// tensors that leave the interface would not be encrypted in this way.
func (e Encryption) Link(address string) (Link, error) {
	if !slices.Contains(Encryptions(), Encryption(e.String())) {
		return Link{}, fmt.Errorf("encryption %q is none of %v", e, Encryptions())
	}
	name, err := Interface(address)
	if err != nil {
		return Link{}, err
	}
	ip := net.ParseIP(address)
	l := Link{Name: name, Address: ip.String()}
	if e.String() != string(WireGuard) || ip.IsLoopback() {
		return l, nil
	}
	if l.Encrypted = hasWireGuard("/", name); !l.Encrypted {
		return Link{}, fmt.Errorf("tensors would leave %s (%s) in plain text: it is neither a WireGuard interface nor "+
			"loopback", name, address)
	}
	return l, nil
}

// Toward checks that an encrypted link leads to another host, which is given by its address with or without a port. It
// sends nothing.
func (l Link) Toward(other string) error {
	if !l.Encrypted {
		return nil
	}
	host, _, err := net.SplitHostPort(other)
	if err != nil {
		host = other
	}
	from, err := AddressTo(net.JoinHostPort(host, "9")) // any port
	if err != nil {
		return err
	}
	if from != l.Address {
		return fmt.Errorf("tensors would not be encrypted: this host reaches %s from its address %s and not through "+
			"%s (%s)", host, from, l.Name, l.Address)
	}
	return nil
}

// hasWireGuard reports whether an interface is WireGuard's, by the files below root. The kernel names the type of its
// own interfaces. Implementations outside the kernel use a TUN device and listen for their configuration on a socket of
// the interface's name (the cross-platform interface of wireguard.com).
func hasWireGuard(root, name string) bool {
	device := filepath.Join(root, "sys/class/net", name)
	if text, err := os.ReadFile(filepath.Join(device, "uevent")); err == nil &&
		slices.ContainsFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool {
			return string(line) == "DEVTYPE=wireguard"
		}) {
		return true
	}
	if _, err := os.Stat(filepath.Join(device, "tun_flags")); err != nil {
		return false
	}
	info, err := os.Stat(filepath.Join(root, "var/run/wireguard", name+".sock"))
	return err == nil && info.Mode()&os.ModeSocket != 0
}
