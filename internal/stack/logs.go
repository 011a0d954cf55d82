package stack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	maxLog     = 16 << 20 // bytes; a longer log is set aside when its part starts
	tailLines  = 20
	tailBytes  = 16 << 10
	maxTailRow = 400 // bytes
)

// openLog opens a log for appending and returns the size that it has now.
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
