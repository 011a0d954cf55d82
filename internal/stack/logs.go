package stack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	maxLog     = 16 << 20 // bytes; a longer log is renamed when its server starts
	tailLines  = 20
	tailBytes  = 16 << 10
	maxTailRow = 400 // bytes
)

// openLog opens a log for appending and returns its current size.
func openLog(path string) (*os.File, int64, error) {
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("set aside log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	return f, fi.Size(), nil
}

// logTail returns the last lines that were written to a log after the offset from, indented.
func logTail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return "  (no log: " + err.Error() + ")"
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil {
		from = max(min(from, fi.Size()), fi.Size()-tailBytes)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return "  (log unreadable: " + err.Error() + ")"
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return "  (it wrote nothing)"
	}
	lines := strings.Split(string(text), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, l := range lines {
		if len(l) > maxTailRow {
			l = l[:maxTailRow] + "…"
		}
		lines[i] = "  | " + l
	}
	return strings.Join(lines, "\n")
}

const (
	watchPeriod  = 2 * time.Second
	maxWatched   = 1 << 20 // bytes read at a time
	watchOverlap = 256     // bytes read twice, so that no phrase is cut in two
)

// logWatch follows what a process writes to its log, starting at an offset, and looks for signs that the process cannot
// work.
type logWatch struct {
	path     string
	from     int64 // where this process started to write
	seen     int64
	diagnose func(text string) error // may be nil
	stall    stall
}

func (s *supervisor) watchLog(from int64) *logWatch {
	return &logWatch{path: s.files.log(s.Server), from: from, seen: from, diagnose: s.program.diagnose,
		stall: stall{sign: s.program.signOfStall}}
}

// look reads what is new and returns an error if the text says that the process cannot work.
func (w *logWatch) look() error {
	if w.diagnose == nil && w.stall.sign == "" {
		return nil
	}
	f, err := os.Open(w.path)
	if err != nil {
		return nil // every failure shows the end of the log, or that the log is unreadable
	}
	defer f.Close()
	at := max(w.from, w.seen-watchOverlap)
	text, err := io.ReadAll(io.NewSectionReader(f, at, maxWatched))
	if err != nil {
		return nil
	}
	fresh := text[min(w.seen-at, int64(len(text))):]
	w.seen = at + int64(len(text))
	if w.diagnose != nil {
		if err := w.diagnose(string(text)); err != nil {
			return err
		}
	}
	return w.stall.look(string(fresh))
}

// stallLooks is in how many looks at the log the sign of a stall must be found before the process is restarted, and
// stallPause how many looks without it show that the process has recovered.
const (
	stallLooks = 10
	stallPause = 3
)

// stall recognises a process that lives on but can no longer work, by an error that it logs again and again.
type stall struct {
	sign    string // part of the error; "" = nothing is looked for
	found   int    // looks that found it, since the process last worked
	without int    // looks without it since then
}

// look takes the text logged since the last look, and returns an error once the process must be restarted.
func (s *stall) look(text string) error {
	switch {
	case s.sign == "":
		return nil
	case strings.Contains(text, s.sign):
		s.found, s.without = s.found+1, 0
	case s.without+1 >= stallPause:
		s.found, s.without = 0, 0
	default:
		s.without++
	}
	if s.found < stallLooks {
		return nil
	}
	return fmt.Errorf("has not worked for %s: its log repeats %q", stallLooks*watchPeriod, s.sign)
}
