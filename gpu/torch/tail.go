package torch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	maxLine    = 4 << 10  // bytes of a line; the rest is dropped
	maxTail    = 64 << 10 // bytes of the lines that are remembered
	linesALap  = 200      // the most lines that are logged in a lap
	lap        = time.Second
	lastInNote = 2 << 10 // bytes of the last lines in an error
)

// tail reads an engine's output. It logs at most linesALap lines in a lap, and remembers the last lines.
type tail struct {
	log *slog.Logger
	end chan struct{} // closed at the end of the output

	mu      sync.Mutex
	lines   []string
	size    int
	total   int // lines so far
	began   time.Time
	logged  int // in this lap
	dropped int
}

// followOutput reads r to its end.
func followOutput(r io.Reader, log *slog.Logger) *tail {
	t := &tail{log: log, end: make(chan struct{})}
	go func() {
		defer close(t.end)
		b := bufio.NewReaderSize(r, maxLine)
		for {
			line, err := readLine(b)
			if err != nil && line == "" {
				return
			}
			t.add(line, time.Now())
		}
	}()
	return t
}

// readLine reads one line without its end, cut to maxLine.
func readLine(b *bufio.Reader) (string, error) {
	part, more, err := b.ReadLine()
	line := string(part)
	for more && err == nil {
		_, more, err = b.ReadLine()
	}
	return strings.ToValidUTF8(line, "?"), err
}

func (t *tail) add(line string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines, t.size, t.total = append(t.lines, line), t.size+len(line)+1, t.total+1
	for t.size > maxTail {
		t.size -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
	}
	if now.Sub(t.began) >= lap {
		if t.dropped > 0 {
			t.log.Warn("engine wrote more lines than are logged", "dropped", t.dropped)
		}
		t.began, t.logged, t.dropped = now, 0, 0
	}
	if t.logged++; t.logged > linesALap {
		t.dropped++
		return
	}
	t.log.LogAttrs(context.Background(), slog.LevelInfo, "engine", slog.String("line", line))
}

// last returns the last lines, at most n bytes of them.
func (t *tail) last(n int) string { return t.since(0, n) }

// mark returns the current position in the lines, for since.
func (t *tail) mark() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// since returns the last n bytes of the lines after a mark.
func (t *tail) since(mark, n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines[min(len(t.lines), max(0, len(t.lines)-(t.total-mark))):]
	size := 0
	for i := len(lines) - 1; i >= 0; i-- {
		if size += len(lines[i]) + 1; size > n {
			return fmt.Sprintf("… (%d lines before)\n%s", i+1, strings.Join(lines[i+1:], "\n"))
		}
	}
	return strings.Join(lines, "\n")
}
