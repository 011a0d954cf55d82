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

// Languages that every executor knows. Other languages are configured by name.
const (
	Python = "python"
	Bash   = "bash"
)

// Package sets that every Python executor knows. Other sets are configured by name.
const (
	PackagesBare  = "bare"  // the standard library
	PackagesNumpy = "numpy" // numpy loaded
	PackagesSympy = "sympy" // numpy and sympy loaded
)

// Bounds on the content of a call.
const (
	MostCode  = 8 << 20  // bytes of Code
	MostInput = 16 << 20 // bytes of Stdin, and of all Files together
	mostFiles = 256
	MostTrace = 256 // bytes

	mostCollect      = 256      // names
	mostCollectBytes = 32 << 10 // of all names together, since they are sent in one packet
)

// MostLimits are the highest limits that a call may ask for, so that one caller cannot use up the resources of all
// others.
var MostLimits = Limits{
	CPU:         24 * time.Hour,
	Wall:        10 * 24 * time.Hour,
	MemoryBytes: 1 << 40,
	OutputBytes: 16 << 20,
	FileBytes:   16 << 30,
	Processes:   8192,
}

// Call is one stateless execution.
type Call struct {
	Language string // "" means Python
	// Packages names the package set that Python has loaded. If it is "", the executor chooses the smallest set that
	// contains what the code imports.
	Packages string
	Code     string
	Stdin    string
	Files    []File   // written to the work folder before the code runs
	Collect  []string // names of files to return if they exist after the code has ended
	Limits   Limits
	Trace    string // identifies the call in logs and answers; neither the verdict nor Key depends on it
}

// File is a file in the work folder. Name is a relative path with slashes that stays inside the folder (fs.ValidPath).
type File struct {
	Name    string
	Content []byte
}

// Limits bound one call. A limit of zero means its default.
type Limits struct {
	CPU         time.Duration // rounded up to whole seconds, which is all that RLIMIT_CPU can express
	Wall        time.Duration // ≥ 10 × CPU, so that no verdict depends on load
	MemoryBytes int64         // address space, on top of the interpreter's own
	OutputBytes int           // for stdout and for stderr separately
	FileBytes   int64         // size of one file that the call writes
	Processes   int           // processes and threads at once, including the first one
}

// DefaultLimits apply to a call that sets none. Wall is 10 × CPU, as Limits requires.
var DefaultLimits = Limits{
	CPU:         2 * time.Second,
	Wall:        20 * time.Second,
	MemoryBytes: 256 << 20,
	OutputBytes: 64 << 10,
	FileBytes:   16 << 20,
	Processes:   31,
}

// OrDefault replaces each limit that is not set by its default. A wall limit that is not set becomes ten times the CPU
// limit.
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
	case len(c.Files) > mostFiles:
		return bad("files: there are %d, at most %d are taken", len(c.Files), mostFiles)
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
	if len(c.Collect) > mostCollect {
		return bad("collect: there are %d names, at most %d are taken", len(c.Collect), mostCollect)
	}
	total = 0
	for i, name := range c.Collect {
		total += len(name)
		if !validName(name) {
			return bad("collect[%d]: %q is not a relative path below the work folder", i, name)
		}
	}
	if total > mostCollectBytes {
		return bad("collect: the names have %d bytes together, at most %d are taken", total, mostCollectBytes)
	}
	if len(c.Trace) > MostTrace || !utf8.ValidString(c.Trace) {
		return bad("trace is no UTF-8 text of at most %d bytes", MostTrace)
	}
	return c.Limits.validate(bad)
}

// badCall is an ErrBadCall whose text starts with the name of the field.
type badCall struct{ text string }

// Error returns ErrBadCall's text, then what is wrong.
func (b badCall) Error() string { return ErrBadCall.Error() + ": " + b.text }

// Unwrap returns ErrBadCall.
func (b badCall) Unwrap() error { return ErrBadCall }

// BadField returns the name of the field that Call.Validate refused; "" if err is not one of its errors.
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
	const above = "limits.%s is %v, at most %v %s taken"
	switch most := MostLimits; {
	case l.CPU > most.CPU:
		return bad(above, "cpu", l.CPU, most.CPU, "are")
	case l.Wall > most.Wall:
		return bad(above, "wall", l.Wall, most.Wall, "are")
	case l.MemoryBytes > most.MemoryBytes:
		return bad(above, "memory", l.MemoryBytes, most.MemoryBytes, "bytes are")
	case l.OutputBytes > most.OutputBytes:
		return bad(above, "output", l.OutputBytes, most.OutputBytes, "bytes are")
	case l.FileBytes > most.FileBytes:
		return bad(above, "file", l.FileBytes, most.FileBytes, "bytes are")
	case l.Processes > most.Processes:
		return bad(above, "processes", l.Processes, most.Processes, "are")
	}
	return nil
}

// Key returns a digest of everything that the verdict depends on: calls with equal keys are the same call.
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
	for _, n := range []int64{int64(l.CPU), int64(l.Wall), l.MemoryBytes, int64(l.OutputBytes), l.FileBytes,
		int64(l.Processes)} {
		number(n)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Result is the verdict on a call. Only Timing depends on anything other than the call.
type Result struct {
	Status Status
	// ExitCode is the exit status, or −1 when a signal ended the process.
	ExitCode  int
	Signal    string // "" or e.g. "SIGKILL"
	Stdout    string
	Stderr    string // includes the traceback, with a fixed file name and no addresses or temporary names
	Traceback string // of the exception that ended the code, as in Stderr; "" if there was none
	// Value is the value of the last expression, as IPython shows it, unless it was printed to stdout; "" if there is
	// none.
	Value  string
	Files  []File // the files of Call.Collect, in its order; missing files are left out
	Timing Timing
}

// Timing is measured, so it belongs only in the timings table.
type Timing struct {
	Queue time.Duration
	Wall  time.Duration
	CPU   time.Duration
	// PeakMemory is the most resident memory in bytes, including the interpreter's own: of a call, or of a session's
	// interpreter from its start to the end of the cell. Processes that the code starts are not counted.
	PeakMemory int64
	// Shared is true if the verdict is that of an identical call of the batch, whose result has the times.
	Shared bool
}
