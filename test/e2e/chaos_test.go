package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// strikesOfAStorm is the number of faults in one storm.
const strikesOfAStorm = 6

// calms are the kinds of runs that storms disturb, as settings. Storms take them in turn.
var calms = [][]string{
	nil,
	{"rollout.mode=interleaved"},
	{"rollout.mode=interleaved", "rollout.shard_groups=1", "pipeline.max_staleness=1", "loss.old_log_probs=recompute"},
	{"record.compact=true"},
	{"loss.old_log_probs=recompute", "engine.servers=[{kind: ropewalk, url: \"http://SERVER\", folder: WEIGHTS}]"},
}

// diskOfStorms is the space for objects, of which a storm can leave none.
const diskOfStorms = 192 << 20

// Faults at random moments happen to a run: its processes are killed or stopped, objects that no manifest names yet are
// damaged, and others lie where it will write. It may end early, and then goes on by the command that it names. In the
// end its record and its policy equal an undisturbed run's. ROPEWALK_STORMS is the number of storms and
// ROPEWALK_STORM_SEED the seed of the first one, which decides what happens and when (make chaos).
func TestStorms(t *testing.T) {
	first := number(t, "ROPEWALK_STORM_SEED", 1)
	var mu sync.Mutex
	var all []float64 // times to the next commit
	for seed := first; seed < first+number(t, "ROPEWALK_STORMS", 1); seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			h, want := needs(t, ownServers("it kills them at random"))
			s := &storm{h: h, rng: rand.New(rand.NewPCG(uint64(seed), 0)), run: "storm"}
			s.smallDisk(t)
			calm := calms[seed%len(calms)]
			var line []string
			for _, x := range calm {
				line = append(line, "--set", s.served(t, x))
			}
			if calm != nil {
				want = h.train(t, "calm", line...)
			}
			s.line, s.calm = recipe("storm", line...), want.Run
			h.undisturbed(t, want, s.blow(t))
			h.run(t, "replay", "--check", "storm").ok(t)
			h.ended(t)
			times := s.print(t)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
		})
	}
	t.Cleanup(func() { // all storms have ended
		slices.Sort(all)
		if n := len(all); n > 0 {
			t.Logf("the run committed again after %d strikes: median %.1f s, p90 %.1f s", n, all[n/2], all[n*9/10])
		}
	})
}

// storm is a run and what happens to it.
type storm struct {
	h       *home
	rng     *rand.Rand
	run     string
	line    []string // of the command that starts it
	calm    string   // the undisturbed run
	command *command // the one that trains
	server  *command // an inference server; nil if the run uses none
	address string   // of the server
	small   bool     // the objects are on a disk of their own
	ends    []string // how commands ended before the last one
	strikes []strike
}

// strike is one fault.
type strike struct {
	kind string
	at   time.Time // of its end
}

// blow trains and strikes until the run is complete.
func (s *storm) blow(t *testing.T) report {
	t.Helper()
	s.command = s.h.start(t, s.line...)
	eventually(t, func() bool { return s.begun() || !s.command.running() }, "the run to begin")
	for {
		pause := time.After(time.Duration(300+s.rng.IntN(3700)) * time.Millisecond)
		if len(s.strikes) == strikesOfAStorm {
			pause = nil
		}
		select {
		case <-pause:
			s.strike(t)
		case <-s.command.ended:
			if r := s.command.wait(t); r.code == 0 {
				return r.report(t)
			}
			s.goOn(t)
		case <-time.After(patience):
			t.Fatalf("the run does not end after %v; its command says:\n%s", s.strikes, s.command.err.String())
		}
	}
}

// begun says that the run can be resumed.
func (s *storm) begun() bool {
	return len(s.h.record().keys(schema.ManifestsPrefix(s.run)+"step=init/")) > 0
}

// goOn has a run whose command has ended go on.
func (s *storm) goOn(t *testing.T) {
	t.Helper()
	r := s.command.wait(t)
	s.ends = append(s.ends, fmt.Sprintf("%d: %s", r.code, lastLine(r.err)))
	require.Less(t, len(s.ends), 3*strikesOfAStorm, "%v\n%v", s.ends, s.strikes)
	if r.code == 3 {
		s.h.run(t, "unpark", s.run, "--retry").ok(t)
	}
	if s.begun() {
		s.command = s.h.start(t, "resume", s.run, "--json")
	} else {
		s.command = s.h.start(t, s.line...)
	}
}

// strike has one fault happen. A kind that nothing can happen to now gives its turn to the next.
func (s *storm) strike(t *testing.T) {
	t.Helper()
	kinds := faultsOfStorms()
	at := s.rng.IntN(len(kinds))
	for i := range kinds {
		k := kinds[(at+i)%len(kinds)]
		if k.happen(s, t) {
			s.strikes = append(s.strikes, strike{k.name, time.Now()})
			return
		}
	}
}

// print shows the strikes, with the time from the end of each to the run's next commit, and how commands ended. It
// returns these times in seconds.
func (s *storm) print(t *testing.T) (all []float64) {
	t.Helper()
	var commits []time.Time
	for _, key := range slices.Concat(s.h.record().keys(schema.ManifestsPrefix(s.run)),
		s.h.record().keys(schema.HeadsPrefix(s.run))) {
		if info, err := os.Stat(s.h.record().path(key)); err == nil {
			commits = append(commits, info.ModTime())
		}
	}
	slices.SortFunc(commits, time.Time.Compare)
	table := fmt.Sprintf("%-28s %s\n", "strike", "next commit after")
	for _, x := range s.strikes {
		after := "-"
		if i, _ := slices.BinarySearchFunc(commits, x.at, time.Time.Compare); i < len(commits) {
			all = append(all, commits[i].Sub(x.at).Seconds())
			after = fmt.Sprintf("%.1f s", all[len(all)-1])
		}
		table += fmt.Sprintf("%-28s %s\n", x.kind, after)
	}
	t.Logf("storm %s\n%scommands that ended early: %d\n%s", filepath.Base(t.Name()), table, len(s.ends),
		strings.Join(s.ends, "\n"))
	return all
}
