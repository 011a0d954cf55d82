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
	"flag"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/schema"
)

// Case measures the codec.
var Case = bench.Case{Name: "record", Doc: "the codec of the record next to pyarrow", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	bucket := flags.String("bucket", filepath.Join(".ropewalk", "s3", "ropewalk"), "folder of the bucket")
	name := flags.String("run", "", "the run whose turns are used; by default the latest")
	rounds := flags.Int("rounds", 9, "measurements of each side")
	return func(ctx context.Context, r *bench.Report) error {
		runtime.GOMAXPROCS(1)
		turns, err := load(ctx, *bucket, *name)
		if err != nil {
			return err
		}
		r.Note("turns", "%d of run %s, %d tokens, %d shards", len(turns.rows), turns.run, turns.tokens(),
			len(turns.shards))
		p, err := startPeer(ctx, r.Dir)
		if err != nil {
			return err
		}
		defer p.Kill()
		for _, s := range turns.sets() {
			if err := s.compare(ctx, r, p, *rounds); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		m, err := stream(turns.rows)
		r.Add(fmt.Sprintf("a file of %d row groups", m.groups), bench.Of("MB of its rows", m.all/1e6),
			bench.Of("group by group", m.streamed/1e6))
		return err
	}
}

// copies is how many steps the first two digits of an id can stand for.
const copies = 100

// streamedBytes is how much raw data is streamed at least, if copies suffice: several row groups.
var streamedBytes = 256 << 20

// memory compares ways of reading one large file, in bytes that are live after a collection of garbage.
type memory struct {
	groups        int
	streamed, all float64 // streamed is the most while the row groups are read one by one
}

// stream makes a file of several row groups and reads it group by group.
func stream(rows []schema.TurnRow) (m memory, err error) {
	data, err := large(rows)
	if err != nil {
		return m, err
	}
	base := live()
	for group, err := range schema.Groups[schema.TurnRow](data) {
		if err != nil {
			return m, err
		}
		m.groups++
		m.streamed = max(m.streamed, live()-base)
		runtime.KeepAlive(group)
	}
	all, err := schema.Decode[schema.TurnRow](data)
	m.all = live() - base
	runtime.KeepAlive(all)
	runtime.KeepAlive(data)
	return m, err
}

// large returns a file that holds the rows under one step after the other.
func large(rows []schema.TurnRow) ([]byte, error) {
	var all []schema.TurnRow
	for step, raw := 0, 0; raw < streamedBytes && step < copies; step++ {
		prefix := fmt.Sprintf("%02d", step)
		for _, r := range rows {
			r.GroupID, r.TrajectoryID = prefix+r.GroupID[len(prefix):], prefix+r.TrajectoryID[len(prefix):]
			all = append(all, r)
			raw += 16*len(r.TokenIDs) + len(r.Response) + len(r.Observation)
		}
	}
	return schema.Encode(all)
}

// live returns the bytes in use on the heap.
func live() float64 {
	runtime.GC()
	runtime.GC() // a pool keeps what it holds for one collection
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
