package record

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/folder"
)

// turns are the turns of a run.
type turns struct {
	run    string
	shards [][]schema.TurnRow
	rows   []schema.TurnRow // of all shards
}

// set is what one file, or each of several files, holds.
type set struct {
	name  string
	files [][]schema.TurnRow
}

func (t turns) sets() []set {
	return []set{{"one file", [][]schema.TurnRow{t.rows}}, {"per shard", t.shards}}
}

func (t turns) tokens() int {
	n := 0
	for _, r := range t.rows {
		n += len(r.TokenIDs)
	}
	return n
}

// load reads a run's turns. Without a name it takes the run that was entered last.
func load(ctx context.Context, bucket, run string) (turns, error) {
	record := analysis.New(folder.New(bucket))
	if run == "" {
		runs, err := record.Runs(ctx)
		if err != nil {
			return turns{}, err
		}
		if len(runs) == 0 {
			return turns{}, fmt.Errorf("%s holds no run whose turns could be used: train one (make run), or name a "+
				"bucket by -bucket", bucket)
		}
		run = runs[0].Run
	}
	visible, err := record.Visible(ctx, run)
	if err != nil {
		return turns{}, err
	}
	shards, err := visible.Shards(ctx, schema.Turns)
	if err != nil {
		return turns{}, err
	}
	out := turns{run: run}
	for _, s := range shards {
		data, err := visible.Bytes(ctx, s)
		if err != nil {
			return turns{}, err
		}
		rows, err := schema.Decode[schema.TurnRow](data)
		if err != nil {
			return turns{}, fmt.Errorf("%s: %w", s.Key, err)
		}
		out.shards = append(out.shards, rows)
		out.rows = append(out.rows, rows...)
	}
	if len(out.rows) == 0 {
		return turns{}, errors.New("run " + run + " has no finished step, so it has no turns")
	}
	schema.Sort(out.rows)
	return out, nil
}

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
func (s set) compare(ctx context.Context, r *bench.Report, p *bench.Peer, rounds int) error {
	var names []string
	size := 0
	for i, rows := range s.files {
		data, err := schema.Encode(rows)
		if err != nil {
			return err
		}
		size += len(data)
		names = append(names, fmt.Sprintf("%s-%d.parquet", s.name, i))
		if err := os.WriteFile(filepath.Join(r.Dir, names[i]), data, 0o600); err != nil {
			return err
		}
	}
	peer := func(does string) bench.Side[answer] {
		return bench.Side[answer]{Name: does, Measure: func(ctx context.Context) (a answer, err error) {
			err = p.Ask(ctx, question{does, names}, &a)
			return a, err
		}}
	}
	read := func() error { return readAll(r.Dir, names) }
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), ours("read", read),
		peer("rows"), peer("table"), ours("write", s.writeAll), peer("default"), peer("same"))
	if err != nil {
		return err
	}
	seconds := func(a answer) float64 { return a.Seconds }
	for _, t := range []struct {
		does, peer   string
		ours, theirs int // index of the side
		ratioAtLeast float64
	}{
		{"read", "read_table to_pylist", 0, 1, 1}, {"read", "read_table", 0, 2, 0.6}, {"write", "default", 3, 4, 1},
		{"write", "same", 3, 5, 1},
	} {
		a, b := bench.Column(found[t.ours], seconds), bench.Column(found[t.theirs], seconds)
		r.Add(fmt.Sprintf("%s: %s, %s", s.name, t.does, t.peer), bench.Of("Go ms", 1e3*bench.Median(a)),
			bench.Of("pyarrow ms", 1e3*bench.Median(b)), bench.Of("ratio", bench.Ratio(b, a)).AtLeast(t.ratioAtLeast))
	}
	for i, peer := range []string{"default", "same"} {
		theirs := found[4+i][0].Bytes
		ratio := bench.Of("ratio", float64(size)/theirs)
		if peer == "same" {
			ratio = ratio.AtMost(1)
		}
		r.Add(fmt.Sprintf("%s: size, %s", s.name, peer), bench.Of("Go KB", float64(size)/1e3),
			bench.Of("pyarrow KB", theirs/1e3), ratio)
	}
	return nil
}

// ours is a side in this process. Garbage of other measurements is collected first; its own is part of its time.
func ours(name string, once func() error) bench.Side[answer] {
	return bench.Side[answer]{Name: name, Measure: func(context.Context) (answer, error) {
		runtime.GC()
		began := bench.ProcessorTime()
		err := once()
		return answer{Seconds: (bench.ProcessorTime() - began).Seconds()}, err
	}}
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
