package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// fixed is a part that finds one figure and ends.
func fixed(name string, n float64, err error) part {
	return part{name, func(_ context.Context, _ *lab, r *bench.Report) error {
		if n > 0 {
			r.Add("count", bench.Of("n", n))
		}
		return err
	}}
}

func testLab(t *testing.T, file string) (*lab, *report) {
	t.Helper()
	o := options{out: file, device: torch.CPU, dir: t.TempDir(), limit: time.Minute}
	r, err := openReport(o)
	require.NoError(t, err)
	l, err := openLab(o, &bytes.Buffer{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		left, err := os.ReadDir(o.dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	return l, r
}

// A part that fails is recorded with what it had found, and the others run.
func TestPartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	l, r := testLab(t, file)
	var stderr bytes.Buffer
	require.NoError(t, runParts(t.Context(), l, []part{
		fixed("tokens", 3, errors.New("no more")), fixed("tax", 4, nil), fixed("peer", 0, bench.Skip("not here")),
	}, r, &stderr))
	require.True(t, r.any(bench.StatusFailed))
	h := readReport(t, file)
	require.Equal(t, bench.StatusFailed, h.part(t, "tokens").Status)
	require.Equal(t, "no more", h.part(t, "tokens").Why)
	require.Equal(t, 3.0, figure(t, h, "tokens", "count", "n"))
	require.Equal(t, bench.StatusOK, h.part(t, "tax").Status)
	require.Equal(t, bench.StatusSkipped, h.part(t, "peer").Status)
	require.Contains(t, stderr.String(), "tokens: failed after 0 s: no more")

	var table bytes.Buffer
	r.print(&table)
	require.Contains(t, table.String(), "\ntokens: failed after 0 s: no more\n       n\ncount  3\n")
	require.Contains(t, table.String(), "say nothing about a GPU")
}

// The file is written after each part, keeps the parts of other runs, and is never there by half.
func TestFileOfSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.json")
	l, r := testLab(t, file)
	require.NoError(t, runParts(t.Context(), l, []part{
		fixed("tax", 1, nil), {"tokens", func(_ context.Context, _ *lab, r *bench.Report) error {
			require.Equal(t, 1.0, figure(t, readReport(t, file), "tax", "count", "n"), "written before the next part")
			r.Add("count", bench.Of("n", 2))
			return nil
		}},
	}, r, &bytes.Buffer{}))
	l, r = testLab(t, file)
	require.NoError(t, runParts(t.Context(), l, []part{fixed("tax", 9, nil)}, r, &bytes.Buffer{}))
	require.False(t, r.any(bench.StatusFailed))
	h := readReport(t, file)
	require.Equal(t, 9.0, figure(t, h, "tax", "count", "n"))
	require.Equal(t, 2.0, figure(t, h, "tokens", "count", "n"))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	l.o.only = []string{"peer"}
	require.NoError(
		t,
		runParts(
			t.Context(), l, []part{fixed("tax", 0, nil), fixed("peer", 5, nil)}, r, &bytes.Buffer{},
		),
	)
	require.Equal(t, 9.0, figure(t, readReport(t, file), "tax", "count", "n"), "not asked for")
}

func TestPartTakesTooLong(t *testing.T) {
	l, r := testLab(t, filepath.Join(t.TempDir(), "out.json"))
	l.o.limit = 10 * time.Millisecond
	slow := part{"tax", func(ctx context.Context, _ *lab, _ *bench.Report) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	require.NoError(t, runParts(t.Context(), l, []part{slow}, r, &bytes.Buffer{}))
	require.Equal(t, bench.StatusFailed, r.Parts["tax"].Status)
	require.Contains(t, r.Parts["tax"].Why, "it took longer than 10ms")
}

// Where NVML is out of order the inventory fails; without a driver it is skipped.
func TestDriverOutOfOrder(t *testing.T) {
	l, r := testLab(t, filepath.Join(t.TempDir(), "out.json"))
	l.host, l.hostErr = nil, errors.New("two versions")
	l.o.device = torch.CUDA
	require.NoError(
		t,
		runParts(t.Context(), l, []part{{"inventory", inventory}, fixed("tax", 1, nil)}, r, &bytes.Buffer{}),
	)
	require.Equal(t, "two versions", r.Parts["inventory"].Why)
	require.Equal(t, bench.StatusOK, r.Parts["tax"].Status)
	l.hostErr = nil
	require.NoError(t, runParts(t.Context(), l, []part{fixed("tax", 1, nil)}, r, &bytes.Buffer{}))
	require.Equal(t, bench.StatusSkipped, r.Parts["tax"].Status)
	require.Equal(t, noDriver, r.Parts["tax"].Why)
}
