// Command cases runs one of the benchmarks that compare a part of the program with its limit or with a peer: it prints
// the figures, writes them to .ropewalk/bench, and fails if one misses its goal. docs/benchmarks.md has the results.
//
//	go run ./internal/bench/cases engine -only 3.3M
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/engine"
	"github.com/ropewalk/ropewalk/internal/bench/fleet"
	"github.com/ropewalk/ropewalk/internal/bench/peer"
	"github.com/ropewalk/ropewalk/internal/bench/pipelined"
	"github.com/ropewalk/ropewalk/internal/bench/record"
	"github.com/ropewalk/ropewalk/internal/bench/rl"
	"github.com/ropewalk/ropewalk/internal/bench/rollout"
	"github.com/ropewalk/ropewalk/internal/bench/sandbox"
	"github.com/ropewalk/ropewalk/internal/bench/serve"
	"github.com/ropewalk/ropewalk/internal/bench/simulate"
	"github.com/ropewalk/ropewalk/internal/bench/soak"
	"github.com/ropewalk/ropewalk/internal/bench/temporal"
	"github.com/ropewalk/ropewalk/internal/bench/view"
)

var cases = []bench.Case{engine.Case, fleet.Case, peer.Case, pipelined.Case, record.Case, rl.Case,
	rollout.Case, sandbox.Case, serve.Case, simulate.Case, soak.Case, temporal.Case, view.Case}

func main() { bench.Main("case", run) }

func run(ctx context.Context, args []string) error {
	var names strings.Builder
	for _, c := range cases {
		if len(args) > 0 && args[0] == c.Name {
			return c.Run(ctx, args[1:])
		}
		fmt.Fprintf(&names, "\n  %-9s %s", c.Name, c.Doc)
	}
	return fmt.Errorf("name a case and its flags (-h lists them):%s", names.String())
}
