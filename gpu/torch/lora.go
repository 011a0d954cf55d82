package torch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// LoRA is a low-rank adapter (Hu et al. 2021): Alpha/Rank · B·A is added to each target projection W of a layer.
type LoRA struct {
	Rank    int
	Alpha   float64
	Targets []string // of projections
	// Seed is the seed of a new adapter's random numbers, which also depend on role and tensor.
	Seed uint64
}

// projections may have an adapter. They are in the order in which a layer computes them.
var projections = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

func (l *LoRA) validate() error {
	if l == nil {
		return nil
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: LoRA: "+format, append([]any{policy.ErrBadRequest}, args...)...)
	}
	switch {
	case l.Rank < 1:
		return bad("rank is %d", l.Rank)
	case !(l.Alpha > 0) || math.IsInf(l.Alpha, 0):
		return bad("alpha is %v", l.Alpha)
	case len(l.Targets) == 0:
		return bad("no targets")
	}
	for i, t := range l.Targets {
		if !slices.Contains(projections, t) || slices.Contains(l.Targets[:i], t) {
			return bad("targets are %s; there are %s, each once", strings.Join(l.Targets, ", "),
				strings.Join(projections, ", "))
		}
	}
	return nil
}

// flags are the engine's flags.
func (l *LoRA) flags() []string {
	if l == nil {
		return nil
	}
	return []string{
		"--lora-rank", strconv.Itoa(l.Rank), "--lora-alpha", strconv.FormatFloat(l.Alpha, 'g', -1, 64),
		"--lora-targets", strings.Join(l.Targets, ","), "--lora-seed", strconv.FormatUint(l.Seed, 10),
	}
}

// judge returns what is wrong with the adapter that an engine trains.
func (l *LoRA) judge(said *wire.LoRA) error {
	var asked *wire.LoRA
	if l != nil {
		targets := slices.Clone(l.Targets)
		slices.SortFunc(
			targets,
			func(a, b string) int { return cmp.Compare(slices.Index(projections, a), slices.Index(projections, b)) },
		)
		asked = &wire.LoRA{Rank: l.Rank, Alpha: l.Alpha, Targets: targets}
	}
	if describeLoRA(asked) != describeLoRA(said) {
		return fmt.Errorf("engine refused: it trains %s, asked for is %s", describeLoRA(said), describeLoRA(asked))
	}
	return nil
}

func describeLoRA(l *wire.LoRA) string {
	if l == nil {
		return "all of a model"
	}
	return fmt.Sprintf("an adapter of rank %d, alpha %v, for %s", l.Rank, l.Alpha, strings.Join(l.Targets, ", "))
}
