package view_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// A step that is finished while the page is open comes into the index and into the figures.
func TestLive(t *testing.T) {
	source := mem.New()
	recordtest.Train(t, source, recordtest.Options{Run: "r", Seed: 1, Steps: 3, Created: "2026-01-02T03:04:05Z"})
	objects := &growing{Store: source}
	objects.upTo(1)
	s := serve(t, objects, "r")
	s.complete(1)
	require.EqualValues(t, 12, s.list(nil).Summary.Count)
	var f view.Figures
	require.Equal(t, http.StatusOK, s.ask("figures", &f))
	require.Equal(t, 1, f.StepsDone)
	objects.upTo(3)
	s.complete(3)
	require.Equal(t, []int{1, 2, 3}, s.viewer.State().Steps)
	require.EqualValues(t, 36, s.list(nil).Summary.Count)
	require.Equal(t, http.StatusOK, s.ask("figures", &f))
	require.Equal(t, 3, f.StepsDone)
	require.NotEmpty(t, f.Sections[0].Figures[0].SVG)
}

// growing shows the heads of the first steps of a run, as the run's store did when it had only those.
type growing struct {
	store.Store
	last atomic.Int64
}

func (g *growing) upTo(step int) { g.last.Store(int64(step)) }

// List implements store.Store.
func (g *growing) List(ctx context.Context, prefix string) ([]store.Object, error) {
	all, err := g.Store.List(ctx, prefix)
	return slices.DeleteFunc(all, func(o store.Object) bool { return g.hidden(o.Key) }), err
}

// Get implements store.Store.
func (g *growing) Get(ctx context.Context, key string) ([]byte, error) {
	if g.hidden(key) {
		return nil, store.ErrNotFound
	}
	return g.Store.Get(ctx, key)
}

func (g *growing) hidden(key string) bool {
	_, rest, _ := strings.Cut(key, "/heads/step=")
	step := 0
	if _, err := fmt.Sscanf(rest, "%d.json", &step); err == nil {
		return int64(step) > g.last.Load()
	}
	return g.last.Load() < 3 && strings.Contains(key, "step=3/") && strings.Contains(key, schema.StageEvaluate)
}

// A step that cannot be read is told, shows what is newer, and is tried again.
func TestDamagedStep(t *testing.T) {
	source := mem.New()
	recordtest.Train(t, source, recordtest.Options{Run: "r", Seed: 1, Steps: 3})
	objects := &damaged{Store: source}
	s := serve(t, objects, "r")
	for state, changed := s.viewer.Changed(); state.Problem == ""; state, changed = s.viewer.Changed() {
		<-changed
	}
	state := s.viewer.State()
	require.Contains(t, state.Problem, "step=2/")
	require.Contains(t, state.Problem, "table=rewards")
	require.Equal(t, []int{3}, state.Steps)
	require.EqualValues(t, 12, s.list(nil).Summary.Count)
	objects.mended.Store(true)
	s.complete(3)
	require.Empty(t, s.viewer.State().Problem)
	require.EqualValues(t, 36, s.list(nil).Summary.Count)
}

// damaged is a store whose second step has a damaged table, until it is mended.
type damaged struct {
	store.Store
	mended atomic.Bool
}

// Get implements store.Store.
func (d *damaged) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := d.Store.Get(ctx, key)
	if !d.mended.Load() && strings.Contains(key, "step=2/") && strings.Contains(key, "table=rewards") && err == nil {
		data = slices.Clone(data)
		data[len(data)/2] ^= 1
	}
	return data, err
}
