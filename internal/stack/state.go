package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/cause"
)

// state is what a supervisor tells the commands that use its server. It holds no secrets.
type state struct {
	PID     int  `json:"pid"`    // of the supervisor
	Server  int  `json:"server"` // process id of the server; 0 while it does not run
	Healthy bool `json:"healthy"`
	// Addresses holds what this server adds to the addresses of the stack; what a worker was started with.
	Addresses Addresses `json:"addresses"`
	Lines     int       `json:"lines"` // number of lines of progress so far
	Said      []string  `json:"said"`  // the last ones
	Failure   *failure  `json:"failure,omitempty"`
}

// keptLines is how many lines of progress a state keeps.
const keptLines = 20

func (s *state) say(line string) {
	s.Said = append(s.Said, line)
	s.Said = s.Said[max(0, len(s.Said)-keptLines):]
	s.Lines++
}

// since returns the lines of progress after the first n, as far as they are kept.
func (s *state) since(n int) []string { return s.Said[max(0, len(s.Said)-(s.Lines-n)):] }

// failure is why a server was given up. Its kind of error passes from the supervisor to the command.
type failure struct {
	Text    string `json:"text"`
	Damaged bool   `json:"damaged,omitempty"` // it is a DamagedError
	Bad     bool   `json:"bad,omitempty"`     // the caller can mend it (badinput.Error)
}

func failureOf(err error) *failure {
	var damaged *DamagedError
	var bad badinput.Error
	return &failure{Text: err.Error(), Damaged: errors.As(err, &damaged), Bad: errors.As(err, &bad)}
}

func (f failure) err() error {
	if f.Damaged {
		return &DamagedError{text: f.Text}
	}
	if f.Bad {
		return badinput.Of(errors.New(f.Text))
	}
	return errors.New(f.Text)
}

// readState returns the zero state if there is none.
func (l layout) readState(server string) (state, error) {
	var s state
	text, err := os.ReadFile(l.state(server))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read what runs in %s: %w", l.root, err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("parse %s: %w", l.state(server), err)
	}
	return s, nil
}

func (l layout) writeState(server string, s state) error {
	s.Addresses.AccessKey, s.Addresses.SecretKey = "", ""
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the state of %s: %w", server, err)
	}
	return writeFile(l.state(server), append(text, '\n'))
}

// supervised reports whether a server has a supervisor. One that was killed leaves its state behind.
func (l layout) supervised(server string) (bool, error) {
	how, err := lockedAs(l.alive(server))
	return how == owned, err
}

// running returns the state of a server that has a supervisor, else the zero state.
func (l layout) running(server string) (state, error) {
	alive, err := l.supervised(server)
	if err != nil || !alive {
		return state{}, err
	}
	return l.readState(server)
}

// writeFile replaces a private file atomically, so that no reader sees half of it.
func writeFile(path string, text []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, cause.Of(err))
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, cause.Of(err))
	}
	return nil
}
