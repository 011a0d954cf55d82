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

	"github.com/ropewalk/ropewalk/sandbox"
)

// pythonVariable names the service's interpreter.
const pythonVariable = "ROPEWALK_SANDBOX_PYTHON"

const (
	servesWithin = 60 * time.Second // a service that has just been started, on a loaded machine
	stopsWithin  = 20 * time.Second
)

// service is `ropewalk sandbox serve` as a process of its own.
type service struct {
	command *exec.Cmd
	address string
	said    bytes.Buffer // its standard error; read it when it has ended
	ended   chan struct{}
}

// serve starts the service at an address on this machine; "" takes a free one. It does not wait until it serves.
func (b *benchmark) serve(ctx context.Context, address string) (*service, error) {
	if _, err := os.Stat(b.program); err != nil {
		return nil, missing("%s is not there (make build)", b.program)
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
		_ = s.command.Wait() // it is asked to end, or killed
	}()
	return s, nil
}

// kill ends the service's process at once, as an operator's SIGKILL would, and waits until it is gone.
func (s *service) kill() {
	_ = s.command.Process.Kill()
	<-s.ended
}

// stop asks the service to end.
func (s *service) stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopsWithin):
		s.kill()
	}
}

// await returns a client's first good verdict on a call, trying until the service serves.
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
		if errors.Is(err, sandbox.ErrBadCall) || errors.As(err, new(missingError)) {
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
