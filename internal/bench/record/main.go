// Package record measures the codec of the record's tables: it reads and writes the turns of a real run, next to
// pyarrow in the same run. It runs from the repository's root and needs a finished step in the local bucket, and a
// Python with pyarrow (ROPEWALK_PYTHON, else python3).
//
// Glossary. A *set* is the rows of all turns, as one file or as the run's own shards. Both sides use one thread and
// take turns. Milliseconds are of processor time, which other load on the machine affects least. A *ratio* above 1
// means that Go is faster, or for sizes that its files are larger; ratios are medians over the rounds. *Default* is
// pyarrow's writer with zstd and nothing else; *same* also has the record's encodings, page index and page version.
package record

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// Case measures the codec.
var Case = bench.Case{Name: "record", Doc: "the codec of the record next to pyarrow", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	bucket := flags.String("bucket", filepath.Join(".ropewalk", "s3", "ropewalk"), "folder of the bucket")
	name := flags.String("run", "", "the run whose turns are used; by default the latest")
	rounds := flags.Int("rounds", 9, "measurements of each side")
	return func(ctx context.Context, r *bench.Report) (err error) {
		runtime.GOMAXPROCS(1)
		turns, err := load(ctx, *bucket, *name)
		if err != nil {
			return err
		}
		r.Note("turns", "%d of run %s, %d tokens, %d shards", len(turns.rows), turns.run, turns.tokens(),
			len(turns.shards))
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
		for _, s := range turns.sets() {
			if err := s.compare(ctx, r, dir, p, *rounds); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		m, err := stream(turns.rows)
		r.Add(fmt.Sprintf("a file of %d row groups", m.groups), bench.Of("MB of its rows", m.all/1e6),
			bench.Of("group by group", m.streamed/1e6))
		return err
	}
}
