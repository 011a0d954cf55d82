package gang

import (
	"fmt"
	"net"
)

// AddressTo returns the address, HOST:PORT, that this host uses to reach another. It sends nothing.
func AddressTo(other string) (string, error) {
	conn, err := net.Dial("udp", other)
	if err != nil {
		return "", fmt.Errorf("find this host's address on the way to %s: %w", other, err)
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// Interface names the network interface that has an address. It returns an error if this host has no such interface.
func Interface(address string) (string, error) {
	ip := net.ParseIP(address)
	if ip == nil {
		return "", fmt.Errorf("%q is no IP address", address)
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("list the network interfaces: %w", err)
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has gone
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no network interface of this host has the address %s", address)
}
