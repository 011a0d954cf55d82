package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// counted are figures of a part that tests make up.
type counted struct {
	N int `json:"n"`
}

func (c counted) rows() []row { return []row{{"count", "many", "some"}} }

func fixed(name string, f figures, err error) part {
	return part{name, func(context.Context, *lab) (figures, error) { return f, err }}
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
		fixed("tokens", counted{3}, errors.New("no more")), fixed("tax", counted{4}, nil), fixed(
			"peer", nil, bench.Skip("not here"),
		),
	}, r, &stderr))
	require.True(t, r.failed())
	h := readReport(t, file)
	require.Equal(t, bench.StatusFailed, h.part(t, "tokens").Status)
	require.Equal(t, "no more", h.part(t, "tokens").Why)
	require.Equal(t, counted{3}, figuresOf[counted](t, h, "tokens"))
	require.Equal(t, bench.StatusOK, h.part(t, "tax").Status)
	require.Equal(t, bench.StatusSkipped, h.part(t, "peer").Status)
	require.Contains(t, stderr.String(), "tokens: failed after 0 s: no more")

	var table bytes.Buffer
	r.print(&table)
	require.Regexp(t, `(?m)^tokens +failed after 0 s: no more`, table.String())
	require.Regexp(t, `(?m)^ +count +many +some$`, table.String())
	require.Contains(t, table.String(), "wanted of a GPU")
}

// The file is written after each part, keeps the parts of other runs, and is never there by half.
func TestFileOfSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.json")
	l, r := testLab(t, file)
	require.NoError(t, runParts(t.Context(), l, []part{
		fixed("tax", counted{1}, nil), {"tokens", func(context.Context, *lab) (figures, error) {
			require.Equal(
				t, counted{1}, figuresOf[counted](t, readReport(t, file), "tax"), "written before the next part",
			)
			return counted{2}, nil
		}},
	}, r, &bytes.Buffer{}))
	l, r = testLab(t, file)
	require.NoError(t, runParts(t.Context(), l, []part{fixed("tax", counted{9}, nil)}, r, &bytes.Buffer{}))
	require.False(t, r.failed())
	h := readReport(t, file)
	require.Equal(t, counted{9}, figuresOf[counted](t, h, "tax"))
	require.Equal(t, counted{2}, figuresOf[counted](t, h, "tokens"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Less(
		t, strings.Index(string(text), `"tokens": {`), strings.Index(string(text), `"tax": {`),
		"in the order of the parts",
	)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	l.o.only = []string{"peer"}
	require.NoError(
		t,
		runParts(
			t.Context(), l, []part{fixed("tax", counted{0}, nil), fixed("peer", counted{5}, nil)}, r, &bytes.Buffer{},
		),
	)
	require.Equal(t, counted{9}, figuresOf[counted](t, readReport(t, file), "tax"), "not asked for")
}

func TestPartTakesTooLong(t *testing.T) {
	l, r := testLab(t, filepath.Join(t.TempDir(), "out.json"))
	l.o.limit = 10 * time.Millisecond
	require.NoError(t, runParts(t.Context(), l, []part{{"tax", func(ctx context.Context, _ *lab) (figures, error) {
		<-ctx.Done()
		return counted{1}, ctx.Err()
	}}}, r, &bytes.Buffer{}))
	require.Equal(t, bench.StatusFailed, r.parts["tax"].Status)
	require.Contains(t, r.parts["tax"].Why, "it took longer than 10ms")
}

// Where NVML is out of order the inventory fails; without a driver it is skipped.
func TestDriverOutOfOrder(t *testing.T) {
	l, r := testLab(t, filepath.Join(t.TempDir(), "out.json"))
	l.host, l.hostErr = nil, errors.New("two versions")
	l.o.device = torch.CUDA
	require.NoError(
		t,
		runParts(t.Context(), l, []part{{"inventory", inventory}, fixed("tax", counted{1}, nil)}, r, &bytes.Buffer{}),
	)
	require.Equal(t, "two versions", r.parts["inventory"].Why)
	require.Equal(t, bench.StatusOK, r.parts["tax"].Status)
	l.hostErr = nil
	require.NoError(t, runParts(t.Context(), l, []part{fixed("tax", counted{1}, nil)}, r, &bytes.Buffer{}))
	require.Equal(t, bench.StatusSkipped, r.parts["tax"].Status)
	require.Equal(t, noDriver, r.parts["tax"].Why)
}

func TestInCell(t *testing.T) {
	require.Equal(t, "short", inCell("short"))
	require.Equal(t, "first …", inCell("first\nsecond"))
	require.Equal(t, strings.Repeat("ä", 80)+" …", inCell(strings.Repeat("ä", 90)))
}
