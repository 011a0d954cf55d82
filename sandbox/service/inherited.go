package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

// firstInherited is the descriptor of the first socket that systemd passes (sd_listen_fds(3)).
const firstInherited = 3

// Inherited returns the one listening socket that systemd has passed to this process. A service that listens there
// needs no network itself: it can answer who connects, and it can connect to no one.
func Inherited() (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || os.Getenv("LISTEN_FDS") != "1" {
		return nil, errors.New("systemd has passed no socket, or several: start the service by its socket unit")
	}
	file := os.NewFile(firstInherited, "socket")
	defer file.Close() // what listens is a copy, which programs that are started do not inherit
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("listen on systemd's socket: %w", err)
	}
	return listener, nil
}
