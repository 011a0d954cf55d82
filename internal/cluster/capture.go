package cluster

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// captureBuffer is how many bytes of frames may wait to be read.
const captureBuffer = 64 << 20

// Capture records the frames that a machine exchanges with the switch.
type Capture struct {
	socket  int
	stop    atomic.Bool
	stopped chan struct{}
	frames  [][]byte
	err     error
}

// Capture starts to record at a machine's port of the switch. The caller must stop it.
func (n *Network) Capture(m *Machine) (*Capture, error) {
	c := &Capture{stopped: make(chan struct{})}
	opened := make(chan error)
	go func() { // the goroutine's thread enters the switch's namespace, and ends with the goroutine
		runtime.LockOSThread()
		var err error
		c.socket, err = packets(n.name, m.port)
		opened <- err
	}()
	if err := <-opened; err != nil {
		return nil, fmt.Errorf("capture the frames of %s: %w", m.Name, err)
	}
	go c.read()
	return c, nil
}

// packets opens a socket in a network namespace that receives every frame of an interface, in both directions.
func packets(space, network string) (socket int, err error) {
	at, err := unix.Open(filepath.Join("/run/netns", space), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	if err := unix.Setns(at, unix.CLONE_NEWNET); err != nil {
		return -1, err
	}
	i, err := net.InterfaceByName(network)
	if err != nil {
		return -1, err
	}
	// With protocol 0 it receives nothing until it is bound.
	if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order
	err = errors.Join(
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
		unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index}),
	)
	if err != nil {
		unix.Close(socket)
		return -1, err
	}
	return socket, nil
}

// read reads frames until it is stopped and none is left.
func (c *Capture) read() {
	defer close(c.stopped)
	buffer := make([]byte, 1<<18) // frames of segments that no device has cut have up to 64 KiB
	for {
		stop := c.stop.Load()
		n, _, err := unix.Recvfrom(c.socket, buffer, unix.MSG_TRUNC)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN && stop:
			return
		case err == unix.EAGAIN:
		case err != nil:
			c.err = fmt.Errorf("read captured frames: %w", err)
			return
		case n > len(buffer):
			c.err = fmt.Errorf("a captured frame has %d bytes, more than %d", n, len(buffer))
			return
		default:
			c.frames = append(c.frames, slices.Clone(buffer[:n]))
		}
	}
}

// Stop ends the recording and returns all frames, each with its Ethernet header, in their order. It returns an error if
// the kernel has dropped any.
func (c *Capture) Stop() ([][]byte, error) {
	c.stop.Store(true)
	<-c.stopped
	defer unix.Close(c.socket)
	if c.err != nil {
		return nil, c.err
	}
	stats, err := unix.GetsockoptTpacketStats(c.socket, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return nil, fmt.Errorf("count captured frames: %w", err)
	}
	if stats.Drops > 0 {
		return nil, fmt.Errorf("the kernel has dropped %d of %d captured frames", stats.Drops, stats.Packets)
	}
	return c.frames, nil
}
