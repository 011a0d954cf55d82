package stack

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const loopbackIP = "127.0.0.1"

// port is a server's listening port. Every try chooses it again until the part has been healthy once; from then on
// clients know it, and restarts keep it.
type port struct {
	use     string // for messages: "Temporal"
	want    int
	held    bool // a server that is ending may still use want
	got     int
	settled bool
}

// heldPatience is how long a killed server may take to release its port.
const heldPatience = 5 * time.Second

// choose sets got to the wanted port. If that port is taken, choose picks a free one and reports it.
func (p *port) choose(say func(string)) error {
	if p.settled {
		return nil
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if isFree(p.want) {
			p.got = p.want
			return nil
		}
		if !p.held || time.Since(began) > heldPatience {
			break
		}
	}
	var err error
	if p.got, err = freePort(loopbackIP); err != nil {
		return fmt.Errorf("%s: %w", p.use, err)
	}
	say(fmt.Sprintf("port %d is taken: %s listens on %s instead", p.want, p.use, p.address()))
	return nil
}

func (p *port) address() string { return net.JoinHostPort(loopbackIP, strconv.Itoa(p.got)) }

func isFree(n int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopbackIP, strconv.Itoa(n)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// freePort returns a port of a loopback address that no one listens on.
func freePort(host string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port on %s: %w", host, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// listening returns nil once the process, or a descendant of it, listens on this port. Between choosing a port and
// listening on it, another stack on this machine may take the port, and its answers would look like our own.
func (p *port) listening(proc *process) error {
	want := fmt.Sprintf("0100007F:%04X", p.got)
	found, err := listeners(proc.pid(), func(at string) bool { return at == want })
	if err != nil {
		return fmt.Errorf("look for the port of %s: %w", p.use, err)
	}
	if len(found) > 0 {
		return nil
	}
	return fmt.Errorf("%s does not listen on %s yet", p.use, p.address())
}

// portOf returns the port of a URL or of host:port on the loopback interface, 0 for anything else.
func portOf(address string) int {
	host, text, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil || host != loopbackIP {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
