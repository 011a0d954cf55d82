package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The names of the servers.
const (
	temporalName = "temporal"
	s3Name       = "s3"
	workerName   = "worker"
)

// titles holds the servers' names in messages.
var titles = map[string]string{temporalName: "Temporal", s3Name: "S3", workerName: "the worker"}

// orderVariable carries the order from the command to the supervisor that it starts.
const orderVariable = "ROPEWALK_STACK_OPTIONS"

// order is what a command asks a supervisor to run.
type order struct {
	Server    string    `json:"server"`
	Options   Options   `json:"options"`
	Addresses Addresses `json:"addresses"` // as far as they are known
}

// supervisor runs one server. A single goroutine uses it.
type supervisor struct {
	order
	files   layout
	program program
	log     *slog.Logger
	state   state
	untold  bool // the state could not be written
	// inherited holds the addresses of a predecessor that was killed: commands know them.
	inherited Addresses
}

// Supervise runs the server that a command has asked for until no command uses it or the context ends. The hidden
// supervise subcommand calls it with a context that ends on SIGTERM and SIGINT.
func Supervise(ctx context.Context) error {
	s, err := newSupervisor()
	if err != nil {
		return err
	}
	users, err := openLock(s.files.users(s.Server))
	if err != nil {
		return err
	}
	defer users.close() // last: who waits for it then finds no supervisor
	s.tell()            // first: who finds us alive reads our state
	alive, err := openLock(s.files.alive(s.Server))
	if err != nil {
		return err
	}
	defer alive.close()
	if err := alive.take(owned); err != nil {
		return fmt.Errorf("become the supervisor of %s in %s: %w", titles[s.Server], s.files.root, err)
	}
	s.log.Info("supervisor started", "pid", s.state.PID)
	serving, unused := context.WithCancel(ctx)
	defer unused()
	go s.awaitUnused(users, unused)
	err = s.newProgram()
	if err == nil {
		err = s.run(serving)
	}
	return s.end(ctx, err)
}

// newSupervisor reads the order from the environment.
func newSupervisor() (*supervisor, error) {
	text := os.Getenv(orderVariable)
	if text == "" {
		return nil, fmt.Errorf("%s is not set: supervisors are started by other commands, not by hand", orderVariable)
	}
	os.Unsetenv(orderVariable) // not for the worker
	s := &supervisor{state: state{PID: os.Getpid()}}
	if err := json.Unmarshal([]byte(text), &s.order); err != nil {
		return nil, fmt.Errorf("parse %s: %w", orderVariable, err)
	}
	s.files = layout{s.Options.Root}
	s.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("server", s.Server)
	// A state that is left belongs to a predecessor that was killed or that gave up.
	if old, err := s.files.readState(s.Server); err == nil && old.Failure == nil && old.PID > 0 {
		s.log.Warn("taking over from a supervisor that was killed", "pid", old.PID)
		s.inherited = old.Addresses
	}
	if s.Server != workerName { // what the servers write is for this user only
		unix.Umask(0o077)
	}
	runtime.LockOSThread() // the kernel ends the server with the thread that has started it
	return s, becomeSubreaper()
}

// awaitUnused calls unused when no command uses the server any more. No command can begin to use it from then on.
func (s *supervisor) awaitUnused(users *lock, unused context.CancelFunc) {
	defer unused()
	if err := users.wait(owned); err != nil {
		s.log.Error("wait until no command uses the server", "error", err)
		return
	}
	for s.Server != workerName { // the worker, which uses the others, ends first
		if alive, err := s.files.supervised(workerName); err != nil || !alive {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// end tells the commands why the server is lost, if they still use it.
func (s *supervisor) end(ctx context.Context, err error) error {
	s.state.Healthy, s.state.Server = false, 0
	switch {
	case err != nil:
		s.log.Error("server given up", "error", err)
		s.state.Failure = failureOf(err)
	case ctx.Err() != nil:
		s.log.Info("stopped on request")
		s.state.Failure = &failure{Text: "its supervisor was asked to stop; see " + s.files.supervisorLog()}
	default:
		s.log.Info("stopped: no command uses the server")
		return os.Remove(s.files.state(s.Server))
	}
	s.tell()
	return nil
}

// say adds a line of progress to what the commands are told, and to the log.
func (s *supervisor) say(line string) {
	s.log.Info(line)
	s.state.say(line)
	s.tell()
}

// tell writes the state. It is tried again if that fails, such as on a full disk.
func (s *supervisor) tell() {
	err := s.files.writeState(s.Server, s.state)
	if s.untold = err != nil; s.untold {
		s.log.Warn("tell the commands what runs", "error", err)
	}
}

// port returns a port for a use: that of a predecessor, if one was killed, whose server may be just ending.
func (s *supervisor) port(use, inherited string, want int) port {
	if n := portOf(inherited); n > 0 {
		return port{use: use, want: n, held: true}
	}
	return port{use: use, want: want}
}
