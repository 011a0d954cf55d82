package runs

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/ropewalk/ropewalk/internal/terminal"
)

// Screen is a terminal whose last line can be a progress bar. Whatever else is written to it first removes the bar, so
// that no message ends up on the bar's line. It is safe for concurrent use.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	plain *terminal.Writer // to w, for texts
	drawn bool
}

// NewScreen makes a screen on a terminal.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w, plain: terminal.NewWriter(w)} }

// Width is the number of columns of the terminal, or 0 if it is not known.
func (s *Screen) Width() int {
	f, ok := s.w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// clearLine moves to the start of the line and erases it.
const clearLine = "\r\x1b[K"

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.plain.Write(p)
}

// Bar draws the bar, in place of an earlier one.
func (s *Screen) Bar(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprint(s.plain, text)
	s.drawn = true
}

// Clear removes the bar.
func (s *Screen) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *Screen) clear() {
	if s.drawn {
		fmt.Fprint(s.w, clearLine)
		s.drawn = false
	}
}
