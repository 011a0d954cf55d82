// Command temporal measures how many runs one Temporal server carries on this machine before it lags: real workflows,
// whose activities do no work but answer after a given time and heartbeat meanwhile.
//
// Glossary. *Schedule to start* is the time from an activity's scheduling until a worker has it: the lag that a run
// feels. A *load* is a number of runs at once, each with the same number of shards, whose episodes take the same time.
// Loads of *no time* show how much the server does at most. The processor times are those of the server and of its
// database; the load itself takes processor time of the same machine, which the result names, too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// result is what is written.
type result struct {
	Cores   int      `json:"cores"`
	Servers []served `json:"servers"`
}

// served are the figures of one kind of server.
type served struct {
	Server string    `json:"server"`
	Loads  []figures `json:"loads"`
}

// load is what the runs ask for.
type load struct {
	Runs    int     `json:"runs"`
	Shards  int     `json:"shards"`
	Seconds float64 `json:"episode_seconds"` // how long a shard's episodes take
}

type options struct {
	servers []string
	loads   []load
	window  time.Duration
	history int // shards of the server's history
}

func main() { bench.Main("temporal", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "temporal.json"), "file of the JSON result")
	servers := flags.String("servers", "postgres,dev", "production server on PostgreSQL, development server on SQLite")
	loads := flags.String("loads", "1x16x0,4x16x0,16x16x0,8x16x10,32x16x10,1x400x60",
		"loads: RUNSxSHARDSxSECONDS, separated by commas")
	window := flags.Duration("for", 30*time.Second, "how long each load is measured")
	history := flags.Int("history-shards", 16, "shards of the production server's history")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := options{window: *window, history: *history, servers: strings.Split(*servers, ",")}
	for text := range strings.SplitSeq(*loads, ",") {
		var l load
		words := strings.Split(text, "x")
		if len(words) != 3 {
			return fmt.Errorf("-loads: %q: want RUNSxSHARDSxSECONDS", text)
		}
		var err error
		if l.Runs, err = strconv.Atoi(words[0]); err == nil {
			l.Shards, err = strconv.Atoi(words[1])
		}
		if err == nil {
			l.Seconds, err = strconv.ParseFloat(words[2], 64)
		}
		if err != nil || l.Runs < 1 || l.Shards < 1 || l.Seconds < 0 {
			return fmt.Errorf("-loads: %q: want RUNSxSHARDSxSECONDS", text)
		}
		o.loads = append(o.loads, l)
	}
	return o.measure(ctx, *out)
}

func (o options) measure(ctx context.Context, out string) error {
	r := result{Cores: runtime.NumCPU()}
	for _, kind := range o.servers {
		start, ok := starts[kind]
		if !ok {
			return fmt.Errorf("-servers: %q: want postgres or dev", kind)
		}
		folder, err := os.MkdirTemp("", "ropewalk-bench-temporal-")
		if err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		defer os.RemoveAll(folder)
		if err := os.Chmod(folder, 0o711); err != nil { // PostgreSQL has a user of its own
			return fmt.Errorf("open the folder: %w", err)
		}
		s, err := start(ctx, folder, o)
		if err != nil {
			return err
		}
		defer s.stop()
		figures, err := o.loadAll(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		r.Servers = append(r.Servers, served{kind, figures})
		s.stop()
		if err := bench.Write(out, r); err != nil {
			return err
		}
	}
	return nil
}

func (o options) loadAll(ctx context.Context, s *server) (all []figures, err error) {
	c, err := s.dial(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	defer c.Close()
	fmt.Printf("%s: runs × shards × seconds\n", s.name)
	for _, l := range o.loads {
		f, err := o.load(ctx, c, s, l)
		if err != nil {
			return nil, fmt.Errorf("%d runs of %d shards of %g s: %w", l.Runs, l.Shards, l.Seconds, err)
		}
		fmt.Println(" ", f)
		all = append(all, f)
	}
	return all, nil
}

// dialer connects to a server.
type dialer = func(ctx context.Context, namespace string) (client.Client, error)
