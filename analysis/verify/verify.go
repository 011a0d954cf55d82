// Package verify says whether the record of a run is complete and sound.
//
// Glossary. A *fault* is a promise of the record that does not hold; a *check* looks for one kind of fault (see
// Checks). The *evidence* is what the checks have read so far: each uses what those before it have read.
package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Check is one promise of the record that Run checks.
type Check struct {
	Name  string
	About string // one line: what holds of a sound record

	// run reads what it needs, adds it to the evidence, and reports faults there. An error means that the store could
	// not be asked.
	run func(ctx context.Context, v *evidence) error
}

// checks are run in this order: each can use what those before it have read.
var checks = []Check{
	{"manifests", "every manifest and head parses and lies under its own key", readManifests},
	{"warm starts", "every manifest outside the run that one of its manifests was made from is there", readForeign},
	{"catalogue", "the run's entry in the catalogue says what its recipe says", checkCatalogue},
	{"shards", "every shard has the size, digest, rows and schema that its manifest states", checkShards},
	{"checkpoints", "every checkpoint has its files and weights, or was pruned and is not needed", checkCheckpoints},
	{"recipes", "every manifest was made under the run's recipe, an amendment of it, or its replay's",
		quick(checkConfig)},
	{"figures", "evaluations and exclusions state the figures that their rows give", quick(checkFigures)},
	{"inputs", "every input and part is there with the digest by which it is named", quick(checkRefs)},
	{"measured", "every evaluation whose time was measured is there", quick(checkMeasured)},
	{"heads", "no step lacks a head before a later step or evaluation, and what heads name is there",
		quick(checkHeads)},
	{"shared steps", "every step that a fork shares is the other run's, which is checked, too", checkShared},
	{"lineage", "every stage of a step was made from the step's own stages",
		eachHead(func(v *evidence, _ int, h schema.Head) { checkStages(v, h, nil) })},
	{"row counts", "every trajectory has a reward or an exclusion, and a row in the selection",
		eachHead(checkRowCounts)},
	{"before training", "the first step states what its rows say that the world offers", checkProperties},
	{"token outputs", "every kept trajectory has its token outputs, where the recipe asks for them",
		eachHead(checkOutputs)},
	{"replays", "every replay was made from its own stages, or else from the step's", eachHead(checkReplays)},
	{"policies", "every update starts from the policy that the step before ended with", eachHead(checkPolicy)},
	{"merged copies", "every merged copy holds the rows of the shards that its compaction names", checkCopies},
	{"replay buffers", "every replay buffer continues the buffer of the step before", eachHead(checkContinued)},
}

// Checks lists what Run checks.
func Checks() []Check { return slices.Clone(checks) }

// quick makes a check of one that needs nothing of the store.
func quick(check func(v *evidence)) func(context.Context, *evidence) error {
	return func(_ context.Context, v *evidence) error {
		check(v)
		return nil
	}
}

// eachHead makes a check of one of a single finished step.
func eachHead(check func(v *evidence, step int, h schema.Head)) func(context.Context, *evidence) error {
	return quick(func(v *evidence) {
		for _, step := range slices.Sorted(maps.Keys(v.heads)) {
			check(v, step, v.heads[step])
		}
	})
}

// Run reads everything that a run has committed, whatever its generation and whether or not its
// step is done, and runs all checks. An error means that the store could not be asked.
func Run(ctx context.Context, objects store.Store, run string) (Report, error) {
	return Signed(ctx, objects, run, nil, true)
}

// Signed is Run, and checks that each of the run's manifests, heads and notes of pruning has a signature by
// one of the keys; nil keys demand none. With keys the run must be complete, unless unfinished allows that it is not:
// no signature says whether something came after the last one.
func Signed(ctx context.Context, objects store.Store, run string, keys signing.Keys, unfinished bool) (Report,
	error) {
	if err := schema.CheckRunID(run); err != nil {
		return Report{}, fmt.Errorf("%w: %w", analysis.ErrNoRun, err)
	}
	listed, err := objects.List(ctx, schema.RunPrefix(run))
	if err != nil {
		return Report{}, fmt.Errorf("list run %s: %w", run, err)
	}
	if len(listed) == 0 {
		return Report{}, analysis.New(objects).NoRun(ctx, run,
			fmt.Sprintf("%s has committed nothing in %s", run, objects))
	}
	v := newEvidence(objects, run, listed)
	for _, c := range checks {
		if err := c.run(ctx, v); err != nil {
			return Report{}, err
		}
	}
	if err := checkSignatures(ctx, v, keys); err != nil {
		return Report{}, err
	}
	if keys != nil && !unfinished {
		checkEnd(v)
	}
	if err := v.addShared(ctx, keys); err != nil {
		return Report{}, err
	}
	v.countUntimed()
	v.countOrphans()
	v.out.Generations = v.generations()
	v.out.Faults = sortFaults(v.out.Faults)
	return v.out, nil
}

// countUntimed counts the finished steps whose activities' measured times were never committed.
func (v *evidence) countUntimed() {
	for step := range v.heads {
		if _, timed := v.manifests[schema.At(v.run, step, "timings_step").ManifestKey()]; step > 0 && !timed {
			v.out.Untimed++
		}
	}
}

// countOrphans counts the objects of the run that nothing names.
func (v *evidence) countOrphans() {
	for _, o := range v.listed {
		if !v.named[o.Key] {
			v.out.Orphans++
		}
	}
}

// generations lists the generations of the run's manifests.
func (v *evidence) generations() []int {
	found := map[int]bool{}
	for _, m := range v.ordered() {
		if m.Warm == "" {
			found[m.Gen] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
