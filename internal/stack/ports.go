package stack

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const loopback = "127.0.0.1"

// port is a part's listening port. Every try chooses it again until the part has been healthy once; from then on
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

// listening returns nil once the process, or a descendant of it, listens on this port. Between choosing a port and
// listening on it, another stack on this machine may take the port, and its answers would look like our own.
func (p *port) listening(proc *process) error {
	sockets := map[string]bool{}
	table, err := os.ReadFile(procFile(proc.pid(), "net/tcp"))
	if err != nil {
		return fmt.Errorf("list the sockets of %s: %w", p.use, err)
	}
	want := fmt.Sprintf("0100007F:%04X", p.got)
	for line := range bytes.Lines(table) {
		// Columns: number, local address, remote address, state (0A: listening), …, the tenth an inode.
		if f := strings.Fields(string(line)); len(f) > 9 && f[1] == want && f[3] == "0A" {
			sockets["socket:["+f[9]+"]"] = true
		}
	}
	for _, pid := range readProcesses().trees([]int{proc.pid()}) {
		entries, err := os.ReadDir(procFile(pid, "fd"))
		if err != nil {
			continue // it has ended
		}
		for _, e := range entries {
			if name, err := os.Readlink(filepath.Join(procFile(pid, "fd"), e.Name())); err == nil && sockets[name] {
				return nil
			}
		}
	}
	return fmt.Errorf("%s does not listen on %s yet", p.use, p.address())
}

// portOf returns the port of a URL or of host:port on the loopback interface, 0 for anything else.
func portOf(address string) int {
	host, text, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if err != nil || host != loopback {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
