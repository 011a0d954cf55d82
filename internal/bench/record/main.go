// Command record measures the codec of the record's tables: it reads and writes the turns of a real run, next to
// pyarrow in the same run. It runs from the repository's root and needs a finished step in the local bucket, and a
// Python with pyarrow (ROPEWALK_PYTHON, else python3).
//
// Glossary. A *set* is the rows of all turns, as one file or as the run's own shards. Both sides use one thread and
// take turns. Seconds are of processor time, which other load on the machine affects least. A *ratio* above 1 means
// that Go is faster, or for sizes that its files are larger; ratios are medians over the rounds. *Default* is pyarrow's
// writer with zstd and nothing else; *same* also has the record's encodings, page index and page version.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// line is one comparison.
type line struct {
	Set   string  `json:"set"`
	Does  string  `json:"does"` // read | write | size
	Peer  string  `json:"peer"`
	Ours  float64 `json:"ours"`  // median seconds, or bytes
	Other float64 `json:"other"` // the peer's
	Ratio float64 `json:"ratio"`
	Limit float64 `json:"limit,omitempty"` // what the ratio must reach, and for sizes must not exceed
	Meets bool    `json:"meets"`
}

// result is what the command writes.
type result struct {
	Run    string `json:"run"`
	Rows   int    `json:"rows"`
	Tokens int    `json:"tokens"`
	Shards int    `json:"shards"`
	Rounds int    `json:"rounds"`
	Lines  []line `json:"lines"`
	// What reading a file of several row groups held in memory beyond the file itself.
	Memory memory `json:"memory"`
}

func main() { bench.Main("record", run) }

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "record.json"), "file of the JSON result")
	bucket := flags.String("bucket", filepath.Join(".ropewalk", "s3", "ropewalk"), "folder of the bucket")
	name := flags.String("run", "", "the run whose turns are used; by default the latest")
	rounds := flags.Int("rounds", 9, "measurements of each side")
	if err := flags.Parse(args); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	turns, err := load(ctx, *bucket, *name)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := startPeer(ctx, dir)
	if err != nil {
		return err
	}
	defer p.Kill()
	r := result{Run: turns.run, Rows: len(turns.rows), Tokens: turns.tokens(),
		Shards: len(turns.shards), Rounds: *rounds}
	for _, s := range turns.sets() {
		lines, err := s.compare(ctx, dir, p, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.Lines = append(r.Lines, lines...)
	}
	if r.Memory, err = stream(turns.rows); err != nil {
		return err
	}
	r.print()
	return bench.Write(*out, r)
}

func (r result) print() {
	fmt.Printf("%d turns of run %s, %d tokens, %d shards; medians of %d rounds\n", r.Rows, r.Run, r.Tokens, r.Shards,
		r.Rounds)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "set\tdoes\tpeer\tGo\tpyarrow\tratio\tgoal")
	for _, l := range r.Lines {
		unit, scale, goal := "ms", 1e3, ""
		if l.Does == "size" {
			unit, scale = "KB", 1e-3
		}
		switch {
		case l.Limit != 0 && l.Meets:
			goal = fmt.Sprintf("%.1f: met", l.Limit)
		case l.Limit != 0:
			goal = fmt.Sprintf("%.1f: missed", l.Limit)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.4g %s\t%.4g %s\t%.3f\t%s\n", l.Set, l.Does, l.Peer, l.Ours*scale, unit,
			l.Other*scale, unit, l.Ratio, goal)
	}
	w.Flush()
	m := r.Memory
	fmt.Printf("a file of %d row groups: rows take %.1f MB, and %.1f MB when they are read group by group\n", m.Groups,
		float64(m.AllBytes)/1e6, float64(m.StreamedBytes)/1e6)
}
