// Package temporal measures how many runs one Temporal server carries on this machine before it lags: real workflows,
// whose activities do no work but answer after a given time and heartbeat meanwhile.
//
// Glossary. *To start* is the time from an activity's scheduling until a worker has it: the lag that a run feels. A
// *load* is a number of runs at once, each with the same number of shards, whose episodes take the same time. Loads of
// *no time* show how much the server does at most. Cores are processor seconds a second: of the server, of its
// database, of the load, and of all that has nothing to do with the measurement. *Ms an activity* is the processor time
// of server and database; workflow tasks, heartbeats and polls are part of it.
package temporal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// load is what the runs ask for.
type load struct {
	Runs, Shards int
	Seconds      float64 // how long a shard's episodes take
}

type options struct {
	window  time.Duration
	history int // shards of the server's history
	conf    temporalconf.Config
}

// Case measures Temporal.
var Case = bench.Case{Name: "temporal", Doc: "how many runs a Temporal server carries", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	var o options
	servers := flags.String("servers", "postgres,dev", "production server on PostgreSQL, development server on SQLite")
	loads := flags.String("loads", "1x16x0,4x16x0,16x16x0,8x16x10,32x16x10,1x400x60",
		"loads: RUNSxSHARDSxSECONDS, separated by commas")
	flags.DurationVar(&o.window, "for", 30*time.Second, "how long each load is measured")
	flags.IntVar(&o.history, "history-shards", 16, "shards of the production server's history")
	return func(ctx context.Context, r *bench.Report) (err error) {
		if o.conf, err = temporalconf.Default(); err != nil {
			return err
		}
		var all []load
		for text := range strings.SplitSeq(*loads, ",") {
			l, err := parseLoad(text)
			if err != nil {
				return fmt.Errorf("-loads: %w", err)
			}
			all = append(all, l)
		}
		for kind := range strings.SplitSeq(*servers, ",") {
			if starts[kind] == nil {
				return fmt.Errorf("-servers: %q: want postgres or dev", kind)
			}
			if err := o.measure(ctx, r, kind, all); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		return nil
	}
}

func parseLoad(text string) (l load, err error) {
	var more rune
	n, _ := fmt.Sscanf(text, "%dx%dx%g%c", &l.Runs, &l.Shards, &l.Seconds, &more)
	if n != 3 || l.Runs < 1 || l.Shards < 1 || l.Seconds < 0 {
		return l, fmt.Errorf("%q: want RUNSxSHARDSxSECONDS", text)
	}
	return l, nil
}

// measure starts a server and puts all loads on it.
func (o options) measure(ctx context.Context, r *bench.Report, kind string, loads []load) error {
	folder := filepath.Join(r.Dir, kind)
	// PostgreSQL, which has its own user, has to get to its folder.
	if err := errors.Join(os.Chmod(r.Dir, 0o711), os.Mkdir(folder, 0o711)); err != nil {
		return err
	}
	s, err := starts[kind](ctx, folder, o)
	if err != nil {
		return err
	}
	defer s.stop()
	c, err := s.connect(ctx, o.conf)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, l := range loads {
		found, err := o.load(ctx, c, s, l)
		if err != nil {
			return fmt.Errorf("%d runs of %d shards of %g s: %w", l.Runs, l.Shards, l.Seconds, err)
		}
		r.Add(fmt.Sprintf("%s, %d × %d × %g s", kind, l.Runs, l.Shards, l.Seconds), found...)
	}
	return nil
}
