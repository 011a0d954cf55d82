package stack

import (
	"fmt"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// port is a part's listening port. It is chosen anew for every try until the part has been healthy
// once; from then on clients know it, and restarts keep it.
type port struct {
	use     string // for messages: "Temporal"
	want    int
	got     int
	settled bool
}

// choose sets got to the wanted port, or to a free one if that is taken, which it tells.
func (p *port) choose(say func(string)) error {
	if p.settled {
		return nil
	}
	if isFree(p.want) {
		p.got = p.want
		return nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return fmt.Errorf("find a free port for %s: %w", p.use, err)
	}
	defer l.Close()
	p.got = l.Addr().(*net.TCPAddr).Port
	say(fmt.Sprintf("port %d is taken: %s listens on %s instead", p.want, p.use, p.address()))
	return nil
}

func (p *port) address() string { return net.JoinHostPort(loopback, strconv.Itoa(p.got)) }

func isFree(n int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(n)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
