package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/schema"
)

//go:embed peer.py
var peerScript string

func startPeer(ctx context.Context, dir string) (*bench.Peer, error) {
	interpreter, err := python.Find(ctx, "pyarrow")
	if err != nil {
		return nil, err
	}
	return bench.StartScript(ctx, "pyarrow", exec.Command(interpreter), peerScript, dir)
}

// question asks the peer for one measurement over files of its folder.
type question struct {
	Does  string   `json:"does"` // table | rows | default | same
	Files []string `json:"files"`
}

// answer is what the peer found.
type answer struct {
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"`
}

// compare measures both sides over one set.
func (s set) compare(ctx context.Context, dir string, p *bench.Peer, rounds int) ([]line, error) {
	var names []string
	size := 0
	for i, rows := range s.files {
		data, err := schema.Encode(rows)
		if err != nil {
			return nil, err
		}
		size += len(data)
		names = append(names, fmt.Sprintf("%s-%d.parquet", s.name, i))
		if err := os.WriteFile(filepath.Join(dir, names[i]), data, 0o600); err != nil {
			return nil, err
		}
	}
	peer := func(does string) bench.Side[answer] {
		return bench.Side[answer]{Name: does, Measure: func(ctx context.Context) (a answer, err error) {
			err = p.Ask(ctx, question{does, names}, &a)
			return a, err
		}}
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), ours("read", func() error { return readAll(dir, names) }),
		peer("rows"), peer("table"), ours("write", s.writeAll), peer("default"), peer("same"))
	if err != nil {
		return nil, err
	}
	sized := func(peer string, a answer, limit float64) line {
		ratio := float64(size) / a.Bytes
		return line{Set: s.name, Does: "size", Peer: peer, Ours: float64(size), Other: a.Bytes, Ratio: ratio,
			Limit: limit, Meets: limit == 0 || ratio <= limit}
	}
	return []line{
		s.timed("read", "read_table to_pylist", found[0], found[1], 1),
		s.timed("read", "read_table", found[0], found[2], 0.6),
		s.timed("write", "default", found[3], found[4], 1),
		s.timed("write", "same", found[3], found[5], 1),
		sized("default", found[4][0], 0), sized("same", found[5][0], 1),
	}, nil
}

func (s set) timed(does, peer string, ours, other []answer, limit float64) line {
	seconds := func(a answer) float64 { return a.Seconds }
	a, b := bench.Column(ours, seconds), bench.Column(other, seconds)
	ratio := bench.Ratio(b, a)
	return line{Set: s.name, Does: does, Peer: peer, Ours: bench.Median(a), Other: bench.Median(b), Ratio: ratio,
		Limit: limit, Meets: ratio >= limit}
}

// ours is a side in this process. Garbage of other measurements is collected first; its own is part of its time.
func ours(name string, once func() error) bench.Side[answer] {
	return bench.Side[answer]{Name: name, Measure: func(context.Context) (answer, error) {
		runtime.GC()
		began, err := spent()
		if err == nil {
			err = once()
		}
		if err != nil {
			return answer{}, err
		}
		ended, err := spent()
		return answer{Seconds: (ended - began).Seconds()}, err
	}}
}

// spent returns the processor time of this process.
func spent() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("measure processor time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

func readAll(dir string, names []string) error {
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if _, err := schema.Decode[schema.TurnRow](data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s set) writeAll() error {
	for _, rows := range s.files {
		if _, err := schema.Encode(rows); err != nil {
			return err
		}
	}
	return nil
}
