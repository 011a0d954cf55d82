package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// side is one way of running calls. measure returns calls per second over about the given time.
type side struct {
	name    string
	measure func(ctx context.Context, least time.Duration) (float64, error)
	close   func() error // nil: nothing to close
	goal    float64      // what our rate over this side's must be at least; 0 = no goal
}

// speed measures throughput: ours, the limit and every peer in turn, round after round.
func (b *benchmark) speed(ctx context.Context) error {
	sides := []side{b.ours()}
	for _, open := range []func(context.Context) (side, error){b.startLimit, b.bubblewrap, b.plainPython} {
		s, err := open(ctx)
		if err != nil {
			b.report.Note("a side is missing", "%v", err)
			continue
		}
		if s.close != nil {
			defer s.close()
		}
		sides = append(sides, s)
	}
	rates, err := interleave(ctx, sides, b.rounds, b.round)
	if err != nil {
		return err
	}
	for i, s := range sides {
		figures := []bench.Figure{bench.Of("calls/s", bench.Median(rates[i]))}
		if i > 0 {
			ratio := bench.Of("ours ÷ it", bench.Ratio(rates[0], rates[i]))
			if s.goal > 0 {
				ratio = ratio.AtLeast(s.goal)
			}
			figures = append(figures, ratio)
		}
		b.report.Add(s.name, figures...)
	}
	return nil
}

func (b *benchmark) ours() side {
	return side{name: "this sandbox", measure: func(ctx context.Context, least time.Duration) (float64, error) {
		l, err := drive(ctx, b.batch, 2, least) // two batches, so that no worker is idle at the end of one
		return batchSize * l.perSecond(), err
	}}
}

// interleave returns each side's rates, one per round, after a short warm-up.
func interleave(ctx context.Context, sides []side, rounds int, round time.Duration) ([][]float64, error) {
	var turns []bench.Side[float64]
	for _, s := range sides {
		if _, err := s.measure(ctx, round/10); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		turns = append(turns, bench.Side[float64]{Name: s.name, Measure: func(ctx context.Context) (float64, error) {
			return s.measure(ctx, round)
		}})
	}
	return bench.TakeTurns(ctx, bench.Rounds(rounds), turns...)
}

// limitScript forks warm interpreters, without isolation or transport.
var limitScript = filepath.Join("sandbox", "bench", "limit.py")

// limitSettings are the script's settings.
type limitSettings struct {
	Zygotes int      `json:"zygotes"`
	Path    []string `json:"path"`
	WarmUp  string   `json:"warm_up"`
	Program string   `json:"program"`
	Output  string   `json:"output"`
}

// startLimit starts as many warm interpreters as the sandbox has, of the same kind.
func (b *benchmark) startLimit(ctx context.Context) (side, error) {
	start, err := b.executor.Start(b.call.Packages)
	if err != nil {
		return side{}, err
	}
	return limitSide(ctx, start, limitSettings{Zygotes: b.executor.Workers(), Path: append([]string{}, start.Path...),
		WarmUp: start.WarmUp, Program: b.call.Code, Output: b.output})
}

func limitSide(ctx context.Context, start zygote.Start, told limitSettings) (side, error) {
	settings, err := json.Marshal(told)
	if err != nil {
		return side{}, err
	}
	command := exec.Command(start.Python, append(start.Flags, limitScript, string(settings))...)
	command.Env = start.Environment
	p, err := bench.StartPeer(ctx, limitScript, command)
	if err != nil {
		return side{}, err
	}
	s := side{name: "the limit", goal: 0.85, close: func() error { _, err := p.Close(); return err }}
	s.measure = func(ctx context.Context, least time.Duration) (float64, error) {
		var answer struct {
			CallsPerS float64 `json:"calls_per_s"`
		}
		err := p.Ask(ctx, least.Seconds(), &answer)
		return answer.CallsPerS, err
	}
	if _, err := s.measure(ctx, 0); err != nil { // returns once it is warm
		return side{}, err
	}
	return s, nil
}

// bubblewrap has the fewest options that keep a program away from the host's processes, network and files.
func (b *benchmark) bubblewrap(ctx context.Context) (side, error) {
	return b.peer(ctx, "bubblewrap", 4.5, "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--")
}

func (b *benchmark) plainPython(ctx context.Context) (side, error) {
	return b.peer(ctx, "plain Python", 0)
}

// peer tries a way of running Python once, and returns it as a side.
func (b *benchmark) peer(ctx context.Context, name string, goal float64, before ...string) (side, error) {
	python, _ := b.executor.Python()
	call := command(append(before, python, "-I", "-S", "-c", "print(1)")...)
	if err := call(ctx); err != nil {
		return side{}, fmt.Errorf("%s does not run here: %w", name, err)
	}
	return side{name: name, goal: goal, measure: func(ctx context.Context, least time.Duration) (float64, error) {
		l, err := drive(ctx, call, b.executor.Workers(), least)
		return l.perSecond(), err
	}}, nil
}

// command runs a program, with an empty environment, that must print 1.
func command(args ...string) caller {
	path, err := exec.LookPath(args[0])
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		c := exec.CommandContext(ctx, path, args[1:]...)
		c.Env = []string{}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // like the sandbox and the limit; see limit.py
		var complaint strings.Builder
		c.Stderr = &complaint
		out, err := c.Output()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, lastLine(complaint.String()))
		}
		if string(out) != "1\n" {
			return fmt.Errorf("%s printed %q, want 1", args[0], out)
		}
		return nil
	}
}
