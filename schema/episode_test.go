package schema

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

func episodeRows(r *rand.Rand, n int) []EpisodeRow {
	rows := make([]EpisodeRow, n)
	for i := range rows {
		group, trajectory := ids(i)
		advantage, item := r.NormFloat64(), `{"a":1}`
		rows[i] = EpisodeRow{
			Run: "r", Step: 3, GroupID: group, TrajectoryID: trajectory, Problem: pick(r, texts), Reward: r.Float64(),
			Messages: `[]`,
			Turns:    []EpisodeTurn{}, TokenIDs: tokens(r, 5), LossMask: tokens(r, 5),
		}
		if r.IntN(2) == 0 {
			rows[i].Advantage, rows[i].Item, rows[i].LogProbs, rows[i].Entropies = &advantage, &item,
				[]float32{-0.5, 0}, []float32{0.25, 0}
		}
		for t := range r.IntN(3) {
			turn := EpisodeTurn{Turn: int32(t), Response: pick(r, texts), Finish: "stop", ToolCalls: []EpisodeCall{}}
			for range r.IntN(3) {
				turn.ToolCalls = append(turn.ToolCalls, EpisodeCall{Name: pick(r, texts), Arguments: `{}`,
					Status: pick(r, statuses), Result: pick(r, texts)})
			}
			rows[i].Turns = append(rows[i].Turns, turn)
		}
	}
	return rows
}

func encodeEpisodes(t *testing.T, pieces ...[]EpisodeRow) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewEpisodeWriter(&out)
	for _, p := range pieces {
		require.NoError(t, w.Write(p))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestEpisodesRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 40} {
		rows := episodeRows(rand.New(rand.NewPCG(7, uint64(n))), n)
		data := encodeEpisodes(t, rows[:n/2], rows[n/2:])
		require.Equal(t, data, encodeEpisodes(t, rows[:n/2], rows[n/2:]), "equal rows, equal bytes")
		got, err := parquet.Read[EpisodeRow](bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.Len(t, got, n)
		for i := range rows {
			require.Equal(t, rows[i], got[i])
		}
	}
}

// One huge step does not become one huge row group.
func TestEpisodesAreCutIntoRowGroups(t *testing.T) {
	row := episodeRows(rand.New(rand.NewPCG(1, 1)), 1)[0]
	row.Messages = `["` + strings.Repeat("x", rowGroupBytes/2) + `"]`
	data := encodeEpisodes(t, []EpisodeRow{row, row, row})
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Len(t, f.RowGroups(), 2)
}

// Turns and calls can be unnested next to the columns: no name occurs twice.
func TestEpisodeNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []reflect.Type{reflect.TypeFor[EpisodeRow](), reflect.TypeFor[EpisodeTurn](),
		reflect.TypeFor[EpisodeCall]()} {
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("parquet"), ",")
			require.NotEmpty(t, name)
			require.False(t, seen[name], name)
			seen[name] = true
		}
	}
}

// unnest counts an export's rows, turns and calls, each unnested next to all columns.
const unnest = `
import sys, polars as pl
rows = pl.read_parquet(sys.argv[1])
turns = rows.explode("turns").unnest("turns").filter(pl.col("turn").is_not_null())
calls = turns.explode("tool_calls").unnest("tool_calls").filter(pl.col("result").is_not_null())
print(rows.height, turns.height, calls.height)
`

func TestEpisodesUnnestInPolars(t *testing.T) {
	python := pythontest.Need(t, "POLARS", "polars")
	rows := episodeRows(rand.New(rand.NewPCG(3, 3)), 60)
	turns, calls := 0, 0
	for _, r := range rows {
		turns += len(r.Turns)
		for _, turn := range r.Turns {
			calls += len(turn.ToolCalls)
		}
	}
	file := filepath.Join(t.TempDir(), "episodes.parquet")
	require.NoError(t, os.WriteFile(file, encodeEpisodes(t, rows), 0o600))
	out, err := exec.Command(python, "-c", unnest, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, fmt.Sprintln(60, turns, calls), string(out))
}
