package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// pythonVariable is the environment variable that names the service's interpreter.
const pythonVariable = "ROPEWALK_SANDBOX_PYTHON"

const (
	servesWithin = 60 * time.Second // for a service that has just been started, on a loaded machine
	stopsWithin  = 20 * time.Second
)

// service is `ropewalk sandbox serve` in its own process.
type service struct {
	command *exec.Cmd
	address string
	said    bytes.Buffer // its standard error; read it after the process has ended
	ended   chan struct{}
}

// serve starts the service at an address on this machine; "" chooses a free one. It does not wait until the service is
// ready.
func (b *benchmark) serve(ctx context.Context, address string) (*service, error) {
	if _, err := os.Stat(b.program); err != nil {
		return nil, bench.Skip("%s is not there (make build)", b.program)
	}
	if address == "" {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		address = free.Addr().String()
		free.Close()
	}
	s := &service{address: address, ended: make(chan struct{})}
	s.command = exec.CommandContext(ctx, b.program, serveArguments(address)...)
	s.command.Env = append(os.Environ(), pythonVariable+"="+b.python)
	s.command.Stderr = &s.said
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.command.Wait() // it ends by a signal
	}()
	return s, nil
}

// kill ends the service's process at once, like an operator's SIGKILL, and waits until it has ended.
func (s *service) kill() {
	_ = s.command.Process.Kill()
	<-s.ended
}

// stop asks the service to end, and waits for that.
func (s *service) stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopsWithin):
		s.kill()
	}
}

// await retries a call until the service answers, and checks the first verdict.
func (s *service) await(ctx context.Context, call sandbox.Call, output string) error {
	ctx, cancel := context.WithTimeout(ctx, servesWithin)
	defer cancel()
	client, err := dial(s.address)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		results, err := client.Run(ctx, []sandbox.Call{call})
		if err == nil {
			return check(results[0], output)
		}
		if errors.Is(err, sandbox.ErrBadCall) || bench.Skipped(err) {
			return err
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the service ended: %w: %s", err, s.said.String())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
