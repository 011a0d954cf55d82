package stack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A fence is a filter of the kernel on the listening socket of a server that cannot be told whom to answer. Connections
// from other addresses than the permitted one get no answer. Browsers, and programs that do not choose the address that
// they ask from, ask from 127.0.0.1.

// noMultipath has a Go program listen on sockets of plain TCP: sockets of Multipath TCP take no filters.
const noMultipath = "GODEBUG=multipathtcp=0"

var errNotListening = errors.New("no one listens on it yet")

// fence has a port of a process answer connections from an address alone, from none if it is nil.
func fence(pid, port int, from net.IP) error {
	sockets, err := listeners(pid, func(at string) bool { return strings.HasSuffix(at, fmt.Sprintf(":%04X", port)) })
	if err != nil {
		return err
	}
	if len(sockets) == 0 {
		return fmt.Errorf("port %d: %w", port, errNotListening)
	}
	for _, s := range sockets {
		if err := s.filter(port, accepting(from)); err != nil {
			return fmt.Errorf("close port %d to others: %w", port, err)
		}
	}
	return nil
}

// accepting returns a program that keeps packets from an IPv4 address, and drops all others.
func accepting(from net.IP) []unix.SockFilter {
	const network = 0xfff00000 // SKF_NET_OFF: offsets are in the packet's IP header
	const source = 12          // of an IPv4 header
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	if from == nil {
		return []unix.SockFilter{drop}
	}
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: network + source},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: binary.BigEndian.Uint32(from.To4())},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
		drop,
	}
}

// socket is an open socket of a process.
type socket struct{ pid, fd int }

// listeners returns the sockets with which a process, or a descendant of it, listens on addresses as in /proc/net/tcp.
func listeners(root int, at func(address string) bool) (found []socket, err error) {
	inodes := map[string]bool{}
	table, err := os.ReadFile(procFile(root, "net/tcp"))
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w", err)
	}
	for line := range bytes.Lines(table) {
		// Columns: number, local address, remote address, state (0A: listening), …, the tenth an inode.
		if f := strings.Fields(string(line)); len(f) > 9 && f[3] == "0A" && at(f[1]) {
			inodes["socket:["+f[9]+"]"] = true
		}
	}
	for _, pid := range readProcesses().trees([]int{root}) {
		entries, err := os.ReadDir(procFile(pid, "fd"))
		if err != nil {
			continue // it has ended
		}
		for _, e := range entries {
			name, err := os.Readlink(filepath.Join(procFile(pid, "fd"), e.Name()))
			if fd, bad := strconv.Atoi(e.Name()); err == nil && bad == nil && inodes[name] {
				found = append(found, socket{pid, fd})
			}
		}
	}
	return found, nil
}

// filter attaches a program to the socket itself, which this process opens too for a moment. Its number may be another
// socket's by now.
func (s socket) filter(port int, program []unix.SockFilter) error {
	process, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", s.pid, err)
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, s.fd, 0)
	if err != nil {
		return fmt.Errorf("open a socket of process %d: %w", s.pid, err)
	}
	defer unix.Close(fd)
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
		return errNotListening
	}
	if name, err := unix.Getsockname(fd); err != nil || portOfName(name) != port {
		return errNotListening
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: unsafe.SliceData(program)}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &p); err != nil {
		return fmt.Errorf("attach a filter: %w", err)
	}
	return nil
}

// portOfName is the port of a socket's name, 0 if it has none.
func portOfName(name unix.Sockaddr) int {
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}
