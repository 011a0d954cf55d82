package runs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// at is the progress of a run of 4 steps after some of them.
func at(done int) workflows.Progress {
	p := workflows.Progress{Run: "r", Step: done, Steps: 4, Stage: "step"}
	for step := 1; step <= done; step++ {
		p.Lines = append(p.Lines, workflows.StepLine{Step: step})
	}
	return p
}

// lines are what a terminal shows of what was written to it: \r and the erasing sequence start a line again.
func lines(written string) []string {
	var out []string
	for _, line := range strings.Split(written, "\n") {
		if i := strings.LastIndex(line, clearLine); i >= 0 {
			line = line[i+len(clearLine):]
		}
		out = append(out, line)
	}
	return out
}

func TestTheBarTellsTheTimeThatIsLeft(t *testing.T) {
	var terminal bytes.Buffer
	view := NewProgressView(&terminal, true)
	view.Show(at(1))
	bar := func() string {
		all := lines(terminal.String())
		return all[len(all)-1]
	}
	require.Contains(t, bar(), "1/4 · training")
	require.NotContains(t, bar(), "left", "one step says nothing about the pace")
	view.firstAt = time.Now().Add(-10 * time.Second)
	view.Show(at(2))
	require.Contains(t, bar(), "2/4 · training · 20s left")
	view.Show(at(4))
	require.Contains(t, bar(), "4/4 · training")
	require.NotContains(t, bar(), "left", "no step is to come")
	view.End()
	require.Empty(t, bar())
}

// A message of another part of the program removes the bar instead of following it on its line.
func TestMessagesDoNotShareTheBarsLine(t *testing.T) {
	var terminal bytes.Buffer
	screen := NewScreen(&terminal)
	view := NewProgressView(screen, true)
	view.Show(at(2))
	fmt.Fprintln(screen, "the worker died")
	require.Contains(t, lines(terminal.String()), "the worker died")
	view.Show(at(2))
	view.End()
	all := lines(terminal.String())
	require.Empty(t, all[len(all)-1])
}

func TestEachStepIsPrintedOnce(t *testing.T) {
	var out bytes.Buffer
	view := NewProgressView(&out, false)
	view.Show(at(1))
	view.Show(at(2))
	view.Show(at(2))
	require.Equal(t, 1, strings.Count(out.String(), stepHeader))
	require.Len(t, strings.Split(strings.TrimSpace(out.String()), "\n"), 3)
	require.NotContains(t, out.String(), "█", "no bar where lines stay")
}

// A step that called edited code is followed by a warning, once for each edit.
func TestEditedCodeIsSaid(t *testing.T) {
	var out bytes.Buffer
	view := NewProgressView(&out, false)
	p := at(4)
	p.Lines[1].Edited, p.Lines[2].Edited = "scoring.py", "scoring.py"
	view.Show(p)
	view.Show(p)
	require.Equal(t, 1, strings.Count(out.String(), "warning: "))
	require.Contains(t, out.String(),
		"warning: step 2 ran Python that was edited since the run began: scoring.py\n")
}

// Updates whose advantages are all 0 take time and teach nothing, which is said once.
func TestUpdatesThatTeachNothing(t *testing.T) {
	var out bytes.Buffer
	view := NewProgressView(&out, false)
	p := at(4)
	p.Lines[0].Advantages = &schema.Advantages{Zero: 0.5}
	p.Lines[1].Advantages, p.Lines[2].Advantages = &schema.Advantages{Zero: 1}, &schema.Advantages{Zero: 1}
	view.Show(p)
	require.Equal(t, 1, strings.Count(out.String(), "note: "))
	require.Contains(t, out.String(), "note: all advantages of step 2 are 0")
}

// Notes come first, what the world offers before the first step's line, and evaluations where their steps are.
func TestTheOrderOfWhatIsPrinted(t *testing.T) {
	var out bytes.Buffer
	view := NewProgressView(&out, false)
	view.offer = func(p workflows.Progress) {
		if len(p.Lines) > 0 && !view.offered {
			view.offered = true
			view.line("before training")
		}
	}
	p := at(3)
	p.Notes = []string{"of the run"}
	p.Measured = []workflows.MeasuredLine{{Step: 2, Rate: api.Rate{Success: 0.5, N: 8}, Greedy: "–"}}
	view.Show(p)
	p = at(4)
	p.Notes, p.Measured = []string{"of the run"}, []workflows.MeasuredLine{
		{Step: 2, Rate: api.Rate{Success: 0.5, N: 8}, Greedy: "–"},
		{Step: 4, Rate: api.Rate{Success: 1, N: 8}, Greedy: "–"}}
	view.Show(p)
	view.Show(p)
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		got = append(got, strings.Join(strings.Fields(line)[:min(3, len(strings.Fields(line)))], " "))
	}
	require.Equal(t, []string{"note: of the", "before training", "step reward success", "1 – –", "2 – –",
		"after step 2:", "3 – –", "4 – –", "after step 4:"}, got)
}

func TestALongSilenceIsExplained(t *testing.T) {
	var out bytes.Buffer
	view := NewProgressView(&out, false)
	view.Show(workflows.Progress{Run: "r", Stage: schema.StageWarmStart})
	out.Reset()
	view.Quiet(nil)
	require.Empty(t, out.String(), "a line was just printed")
	view.spoke = time.Now().Add(-quietFor)
	view.Working(Work{Activity: "WarmStart"})
	view.Quiet(nil)
	require.Regexp(t, `^ +0\.\ds  still warm start, in activity WarmStart\n$`, out.String())
	out.Reset()
	view.spoke = time.Now().Add(-quietFor)
	view.Quiet(errors.New("no worker has answered"))
	view.Quiet(errors.New("no worker has answered"))
	require.Regexp(t, `^ +0\.\ds  still warm start; the run does not answer: no worker has answered\n$`, out.String())
}
