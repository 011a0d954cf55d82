package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"
)

// Languages that every executor knows. Others are configured by name.
const (
	Python = "python"
	Bash   = "bash"
)

// Package sets that every executor of Python knows. Others are configured by name.
const (
	PackagesBare  = "bare"  // the standard library
	PackagesNumpy = "numpy" // numpy loaded
	PackagesSympy = "sympy" // numpy and sympy loaded
)

// Bounds of what a call may hold.
const (
	MostCode  = 8 << 20  // bytes of Code
	MostInput = 16 << 20 // bytes of Stdin, and of all Files together
	MostFiles = 256
	MostTrace = 256 // bytes
)

// Call is one stateless execution.
type Call struct {
	Language string // "" is Python
	// Packages names the set that Python has at hand; "" lets the executor choose the smallest that holds
	// what the code imports.
	Packages string
	Code     string
	Stdin    string
	Files    []File   // put into the work folder before the code runs
	Collect  []string // names of files to return if they are there when the code has ended
	Limits   Limits
	Trace    string // says in logs and answers what the call belongs to; no verdict depends on it, nor does Key
}

// File is one in the work folder; Name is relative, with slashes, and leads nowhere else (fs.ValidPath).
type File struct {
	Name    string
	Content []byte
}

// Limits bound one call. What is zero takes its default.
type Limits struct {
	CPU         time.Duration // RLIMIT_CPU granularity is one second; rounded up
	Wall        time.Duration // ≥ 10 × CPU, so that no verdict depends on load
	MemoryBytes int64         // address space beyond the interpreter's own
	OutputBytes int           // of stdout and of stderr each
	FileBytes   int64         // of one file that the call writes
	Processes   int           // processes and threads at once, the first one included
}

// DefaultLimits bound a call that names none. Wall is 10 × CPU, as the contract of Limits asks.
var DefaultLimits = Limits{
	CPU:         2 * time.Second,
	Wall:        20 * time.Second,
	MemoryBytes: 256 << 20,
	OutputBytes: 64 << 10,
	FileBytes:   16 << 20,
	Processes:   31,
}

// OrDefault replaces each limit that is not set by the default one; a wall limit that is not
// set follows the CPU limit at ten times its length.
func (l Limits) OrDefault() Limits {
	if l.CPU == 0 {
		l.CPU = DefaultLimits.CPU
	}
	if l.Wall == 0 {
		l.Wall = 10 * l.CPU
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = DefaultLimits.MemoryBytes
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = DefaultLimits.OutputBytes
	}
	if l.FileBytes == 0 {
		l.FileBytes = DefaultLimits.FileBytes
	}
	if l.Processes == 0 {
		l.Processes = DefaultLimits.Processes
	}
	return l
}

// Validate returns an ErrBadCall that names the field, or nil.
func (c Call) Validate() error {
	bad := func(format string, args ...any) error { return badCall{fmt.Sprintf(format, args...)} }
	switch {
	case len(c.Code) > MostCode:
		return bad("code has %d bytes, at most %d are taken", len(c.Code), MostCode)
	case !utf8.ValidString(c.Code):
		return bad("code is not UTF-8")
	case len(c.Stdin) > MostInput:
		return bad("stdin has %d bytes, at most %d are taken", len(c.Stdin), MostInput)
	case len(c.Files) > MostFiles:
		return bad("files: there are %d, at most %d are taken", len(c.Files), MostFiles)
	}
	total, names := 0, map[string]bool{}
	for i, f := range c.Files {
		total += len(f.Content)
		if !validName(f.Name) || names[f.Name] {
			return bad("files[%d]: name %q is not a relative path of its own below the work folder", i, f.Name)
		}
		names[f.Name] = true
	}
	if total > MostInput {
		return bad("files have %d bytes together, at most %d are taken", total, MostInput)
	}
	for i, name := range c.Collect {
		if !validName(name) {
			return bad("collect[%d]: %q is not a relative path below the work folder", i, name)
		}
	}
	if len(c.Trace) > MostTrace || !utf8.ValidString(c.Trace) {
		return bad("trace is no UTF-8 text of at most %d bytes", MostTrace)
	}
	return c.Limits.validate(bad)
}

// badCall is an ErrBadCall whose text opens with the field's name.
type badCall struct{ text string }

func (b badCall) Error() string { return ErrBadCall.Error() + ": " + b.text }
func (b badCall) Unwrap() error { return ErrBadCall }

// BadField names the field that Call.Validate refused; "" if err is none of its errors.
func BadField(err error) string {
	var bad badCall
	if !errors.As(err, &bad) {
		return ""
	}
	return bad.text[:strings.IndexAny(bad.text, " :")]
}

func validName(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= 255 && utf8.ValidString(name) && !hasNUL(name)
}

func hasNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

func (l Limits) validate(bad func(string, ...any) error) error {
	switch {
	case l.CPU < 0:
		return bad("limits.cpu is negative: %s", l.CPU)
	case l.Wall < 0:
		return bad("limits.wall is negative: %s", l.Wall)
	case l.MemoryBytes < 0:
		return bad("limits.memory is negative: %d bytes", l.MemoryBytes)
	case l.OutputBytes < 0:
		return bad("limits.output is negative: %d bytes", l.OutputBytes)
	case l.FileBytes < 0:
		return bad("limits.file is negative: %d bytes", l.FileBytes)
	case l.Processes < 0:
		return bad("limits.processes is negative: %d", l.Processes)
	}
	return nil
}

// Key is the digest of everything that the verdict depends on: calls with equal keys are the same call.
func (c Call) Key() string {
	h := sha256.New()
	put := func(b []byte) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	number := func(n int64) { put(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	if c.Language == "" {
		c.Language = Python
	}
	for _, s := range []string{c.Language, c.Packages, c.Code, c.Stdin} {
		put([]byte(s))
	}
	number(int64(len(c.Files)))
	for _, f := range c.Files {
		put([]byte(f.Name))
		put(f.Content)
	}
	number(int64(len(c.Collect)))
	for _, name := range c.Collect {
		put([]byte(name))
	}
	l := c.Limits.OrDefault()
	for _, n := range []int64{int64(l.CPU), int64(l.Wall), l.MemoryBytes, int64(l.OutputBytes), l.FileBytes, int64(l.Processes)} {
		number(n)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Result is a call's verdict. Only Timing depends on anything but the call.
type Result struct {
	Status Status
	// ExitCode is the exit status, or −1 when a signal ended the process.
	ExitCode  int
	Signal    string // "" or e.g. "SIGKILL"
	Stdout    string
	Stderr    string // traceback included; file name fixed, no addresses or temporary names
	Traceback string // of the exception that ended the code, as in Stderr; "" if none
	// Value is the last expression's value as IPython shows it, when stdout does not hold it; "" if none.
	Value  string
	Files  []File // of Call.Collect, in its order; those that are not there are left out
	Timing Timing
}

// Timing is measured, and belongs in the timings table alone.
type Timing struct {
	Queue time.Duration
	Wall  time.Duration
	CPU   time.Duration
	// PeakMemory is bytes resident at most, the interpreter's own included: of a call, or of a session's interpreter from
	// its start to the end of the cell. Processes that code starts are not counted.
	PeakMemory int64
}
