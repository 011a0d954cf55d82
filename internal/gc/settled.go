package gc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
)

// The prefixes of the keys that are considered.
const (
	runs   = "runs/run="
	warm   = "warmstarts/"
	probes = ".ropewalk-probe/"
)

var (
	runCheckpoint  = regexp.MustCompile(`^runs/run=([^/]+)/checkpoints/(\d+)-[0-9a-f]+/([^/]+)$`)
	warmCheckpoint = regexp.MustCompile(`^warmstarts/([0-9a-f]{64})/checkpoints/\d+-[0-9a-f]+/([^/]+)$`)
)

// The stages that commit measured times.
const (
	timingsOfStep = "timings_step"
	timingsOfRun  = "timings_run"
)

// record holds what is needed of the record to decide whether a place is settled.
type record struct {
	objects store.Store
	there   map[string]bool         // keys of manifests and heads
	heads   map[string]*schema.Head // by key, once read
	deleted map[string]bool         // runs without a recipe, once looked up: whether a command has deleted them
}

// kind says what a key holds.
type kind int

const (
	other      kind = iota // never collected
	shard                  // a data shard
	checkpoint             // a checkpoint's file
	probe                  // an object that a probe of the store left
	segment                // finished turns of a shard that was being sampled
)

func kindOf(key string) kind {
	if strings.HasPrefix(key, probes) {
		return probe
	}
	for _, form := range []*regexp.Regexp{runCheckpoint, warmCheckpoint} {
		if m := form.FindStringSubmatch(key); m != nil && m[len(m)-1] != schema.PrunedFile {
			return checkpoint
		}
	}
	if _, err := schema.ParseDataKey(key); err == nil {
		return shard
	}
	if _, _, _, _, ok := schema.ParseSegmentKey(key); ok {
		return segment
	}
	return other
}

// settled reports whether no future manifest can name a key, and no worker needs it. If not, why says what is still to
// come.
func (r *record) settled(ctx context.Context, key string) (ok bool, why string, err error) {
	if strings.HasPrefix(key, probes) {
		return true, "", nil
	}
	if gone, err := r.isDeleted(ctx, key); err != nil || gone {
		return gone, "", err
	}
	if digest, _, ok := strings.Cut(strings.TrimPrefix(key, warm), "/"); ok && strings.HasPrefix(key, warm) {
		return r.there[schema.AtWarmStart(digest).ManifestKey()], "the warm start is not committed", nil
	}
	if m := runCheckpoint.FindStringSubmatch(key); m != nil {
		step, err := strconv.Atoi(m[2])
		if err != nil {
			return false, "", fmt.Errorf("%s: step: %w", key, err)
		}
		if step == 0 {
			return r.there[schema.AtInit(m[1], schema.StageWarmStart).ManifestKey()],
				"the run's first policy is not committed", nil
		}
		head, err := r.head(ctx, m[1], strconv.Itoa(step))
		return head != nil, notDone, err
	}
	if run, step, _, _, ok := schema.ParseSegmentKey(key); ok {
		head, err := r.head(ctx, run, strconv.Itoa(step))
		return head != nil, notDone, err
	}
	parts, err := schema.ParseDataKey(key)
	if err != nil {
		return false, "", err
	}
	return r.settledShard(ctx, parts)
}

const notDone = "its step is not done"

// isDeleted reports whether a key is that of a run that was deleted, and that no one has begun again under its name.
func (r *record) isDeleted(ctx context.Context, key string) (bool, error) {
	run, _, ok := strings.Cut(strings.TrimPrefix(key, runs), "/")
	if !ok || !strings.HasPrefix(key, runs) || r.there[schema.AtInit(run, schema.StagePrepare).ManifestKey()] {
		return false, nil
	}
	if known, looked := r.deleted[run]; looked {
		return known, nil
	}
	for _, begun := range []string{schema.RequestKey(run), schema.CatalogueKey(run)} {
		if _, err := r.objects.Get(ctx, begun); err == nil || !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
	}
	r.deleted[run] = false
	deeds, err := r.objects.List(ctx, schema.DeedsPrefix+run+"/")
	for _, o := range deeds {
		var deed schema.Deed
		data, err := r.objects.Get(ctx, o.Key)
		if err == nil {
			err = json.Unmarshal(data, &deed)
		}
		if err != nil {
			return false, fmt.Errorf("collect orphans: read %s: %w", o.Key, err)
		}
		r.deleted[run] = r.deleted[run] || deed.Action == schema.DeedDelete
	}
	return r.deleted[run], err
}

func (r *record) settledShard(ctx context.Context, p schema.DataKeyParts) (bool, string, error) {
	at := func(stage string) bool {
		place := schema.AtInit(p.Run, stage)
		place.Step = p.Step
		return r.there[place.WithGen(p.Gen).ManifestKey()]
	}
	if p.Compact {
		return at(schema.StageCompact), "its compaction is not committed", nil
	}
	if evaluate, _ := stages.Of(schema.StageEvaluate); slices.Contains(evaluate.Writes, p.Table) {
		return at(schema.StageEvaluate), "its evaluation is not committed", nil
	}
	if p.Table == schema.Documents {
		if p.Step == schema.InitStep {
			return false, "an amendment of the recipe may name it", nil
		}
		return at(schema.StageReplay), "its replay has not started", nil
	}
	head, err := r.head(ctx, p.Run, p.Step)
	if err != nil {
		return false, "", err
	}
	if p.Table == schema.Timings {
		return r.settledTimings(ctx, p, head, at)
	}
	maker := stages.Maker(p.Table)
	if p.Table == schema.Selection && p.Shard >= 0 {
		maker = schema.StageReward // its shards by number list what the stage reward excluded
	}
	if maker == "" || p.Step == schema.InitStep {
		return false, "its stage is not known", nil
	}
	if head != nil && p.Gen <= latest(head, maker) {
		return true, "", nil
	}
	return head != nil && at(maker), notDone, nil
}

// settledTimings decides about measured times. Those of calls, and those that shards record themselves, are committed
// before the head; those of the step and of its evaluation are committed after it. All share a key prefix, in which the
// former have a shard number.
func (r *record) settledTimings(ctx context.Context, p schema.DataKeyParts, head *schema.Head,
	at func(stage string) bool) (bool, string, error) {
	const why = "measured times of the step may still be committed"
	switch {
	case p.Step == schema.InitStep:
		return at(timingsOfRun), why, nil
	case p.Shard >= 0:
		return head != nil, why, nil
	case head == nil || !at(timingsOfStep):
		return false, why, nil
	case at(timingsOfRun):
		return true, "", nil
	}
	step, err := strconv.Atoi(p.Step)
	if err != nil {
		return false, "", err
	}
	next, err := r.head(ctx, p.Run, strconv.Itoa(step+1))
	return next != nil && !at(schema.StageEvaluate), why, err
}

// latest returns the generation of a stage that a head names, or the latest generation of all stages if the head does
// not name that stage.
func latest(head *schema.Head, stage string) int {
	if gen, ok := head.Generations[stage]; ok {
		return gen
	}
	gen := 0
	for _, g := range head.Generations {
		gen = max(gen, g)
	}
	return gen
}

// head returns a step's head, or nil if it has none.
func (r *record) head(ctx context.Context, run, step string) (*schema.Head, error) {
	key := schema.HeadKey(run, step)
	if !r.there[key] {
		return nil, nil
	}
	if h := r.heads[key]; h != nil {
		return h, nil
	}
	data, err := r.objects.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // a person has just deleted it, so that the step is run again
	}
	if err != nil {
		return nil, fmt.Errorf("collect orphans: read head: %w", err)
	}
	h, err := schema.DecodeHead(data)
	if err != nil {
		return nil, fmt.Errorf("collect orphans: %s: %w", key, err)
	}
	r.heads[key] = &h
	return &h, nil
}
