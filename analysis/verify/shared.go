package verify

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/schema"
)

// head returns the head of a step, which another run may have made; the zero value if there is none.
func (v *evidence) head(step int) schema.Head {
	if h, ok := v.shared[step]; ok {
		return h
	}
	return v.heads[step]
}

// checkShared checks that a fork shares the steps that it says it does, and that its heads of them name what the other
// run's heads name.
func checkShared(ctx context.Context, v *evidence) error {
	key := schema.AtInit(v.run, schema.StagePrepare).ManifestKey()
	fork, err := v.manifests[key].Fork()
	if err != nil {
		v.fault(FaultLineage, key, "%v", err)
		return nil
	}
	for step := 1; step <= fork.Step; step++ {
		missingHead(v, step, "does not exist, but the run shares the steps up to %d", fork.Step)
	}
	record := commit.New(v.objects)
	for _, step := range slices.Sorted(maps.Keys(v.shared)) {
		h, at := v.shared[step], schema.HeadKey(fork.Run, strconv.Itoa(step))
		if step > fork.Step {
			v.fault(FaultLineage, h.Key(), "names the manifests of run %s, but the run shares %d steps", h.From,
				fork.Step)
			continue
		}
		other, _, found, err := record.Head(ctx, fork.Run, h.Step)
		switch {
		case errors.Is(err, commit.ErrDamaged): // a fault of the other run
		case err != nil:
			return err
		case !found:
			v.fault(FaultMissing, at, "does not exist, but %s shares its step", h.Key())
		case !reflect.DeepEqual(other.SharedBy(v.run), h):
			v.fault(FaultLineage, h.Key(), "names other manifests than %s, whose step it shares", at)
		}
	}
	return nil
}

// addShared adds the faults of the run that a fork shares steps with.
func (v *evidence) addShared(ctx context.Context, keys signing.Keys) error {
	fork, err := v.manifests[schema.AtInit(v.run, schema.StagePrepare).ManifestKey()].Fork()
	if err != nil || fork.Run == "" {
		return nil // a fault already
	}
	of, err := Signed(ctx, v.objects, fork.Run, keys, true)
	if errors.Is(err, analysis.ErrNoRun) { // its missing heads are faults
		return nil
	}
	v.out.Faults = append(v.out.Faults, of.Faults...)
	return err
}
