package main

import (
	"fmt"
	"io"
	"time"

	"github.com/ropewalk/ropewalk/internal/runs"
)

// progressLine prints how far a long command is: on a terminal in a bar, elsewhere in a line every few seconds.
type progressLine struct {
	w      io.Writer
	screen *runs.Screen // nil where lines stay
	last   time.Time
}

func newProgressLine(con *console) *progressLine {
	screen, _ := con.err.(*runs.Screen)
	return &progressLine{w: con.err, screen: screen, last: time.Now()}
}

// progressLineEvery is the time between two lines of progress; a bar is drawn 50 times as often.
const progressLineEvery = 5 * time.Second

func (v *progressLine) show(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case v.screen != nil && time.Since(v.last) > progressLineEvery/50:
		v.screen.Bar(text)
	case v.screen == nil && time.Since(v.last) > progressLineEvery:
		fmt.Fprintln(v.w, text)
	default:
		return
	}
	v.last = time.Now()
}

func (v *progressLine) clear() {
	if v.screen != nil {
		v.screen.Clear()
	}
}
