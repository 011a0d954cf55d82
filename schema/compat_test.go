package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// shardOf writes rows of any type as a sealed shard that claims a table and a version.
func shardOf[T any](t *testing.T, table, version string, codec parquet.WriterOption, rows ...T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, codec, parquet.KeyValueMetadata(metaTable, table),
		parquet.KeyValueMetadata(metaVersion, version), parquet.KeyValueMetadata(metaSeal, sealMark+sealDigits))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, seal(out.Bytes()))
	return out.Bytes()
}

var zstd = parquet.Compression(&parquet.Zstd)

// rewardsBefore is RewardRow as a version without the nullable column would have written it.
type rewardsBefore struct {
	GroupID       string  `parquet:"group_id"`
	TrajectoryID  string  `parquet:"trajectory_id"`
	Level         int32   `parquet:"level"`
	Reward        float64 `parquet:"reward"`
	Outcome       float64 `parquet:"outcome"`
	Success       bool    `parquet:"success"`
	Turns         int32   `parquet:"turns"`
	ToolCalls     int32   `parquet:"tool_calls"`
	ToolErrors    int32   `parquet:"tool_errors"`
	AnswerTags    int32   `parquet:"answer_tags"`
	ErrorPenalty  float64 `parquet:"error_penalty"`
	FormatPenalty float64 `parquet:"format_penalty"`
	Verdict       string  `parquet:"verdict"`
}

func before() rewardsBefore {
	return rewardsBefore{GroupID: GroupID(1, 2), TrajectoryID: TrajectoryID(1, 2, 3), Level: 2, Reward: 0.5,
		Verdict: "exact"}
}

func TestAMissingNullableColumnIsNull(t *testing.T) {
	rows, err := Decode[RewardRow](shardOf(t, "rewards", "1", zstd, before(), before()))
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, RewardRow{GroupID: "00001/0002", TrajectoryID: "00001/0002/003", Level: 2, Reward: 0.5,
		Verdict: "exact"}, rows[1])
}

// A later minor version may have columns that this program does not know.
func TestALaterMinorVersionIsReadWithoutWhatIsUnknown(t *testing.T) {
	type bonus struct {
		rewardsBefore
		Bonus *float64 `parquet:"bonus,optional"`
		Steps []int32  `parquet:"steps,list"`
	}
	for _, version := range []string{strconv.Itoa(Version + 1), fmt.Sprintf("1.%d", Version+7)} {
		row := bonus{before(), new(0.5), []int32{1, 2}}
		data := shardOf(t, "rewards", version, zstd, row, row)
		rows, err := Decode[RewardRow](data)
		require.NoError(t, err)
		require.Equal(t, RewardRow{GroupID: "00001/0002", TrajectoryID: "00001/0002/003", Level: 2, Reward: 0.5,
			Verdict: "exact"}, rows[1])
		described, err := Describe(data, 1)
		require.NoError(t, err)
		require.Greater(t, described.SchemaVersion, Version)
	}
}

func TestFilesOfAnotherKindAreRefusedByName(t *testing.T) {
	type missing struct {
		GroupID string `parquet:"group_id"`
	}
	type extra struct {
		rewardsBefore
		Bonus *float64 `parquet:"bonus,optional"`
	}
	type retyped struct {
		GroupID      string `parquet:"group_id"`
		TrajectoryID string `parquet:"trajectory_id"`
		Level        int64  `parquet:"level"`
	}
	type nullable struct {
		GroupID *string `parquet:"group_id,optional"`
	}
	tests := []struct {
		name string
		data []byte
		text string
	}{
		{"another table", shardOf(t, "turns", "1", zstd, before()), `ropewalk.table says "turns"`},
		{"a later major version", shardOf(t, "rewards", "2.0", zstd, before()),
			"format version 2.0 is not supported by this program, which reads 1.x; upgrade ropewalk"},
		{"no version", shardOf(t, "rewards", "", zstd, before()), `ropewalk.schema_version: "" is not a version`},
		{"a missing column", shardOf(t, "rewards", "1", zstd, missing{}), "required column trajectory_id is missing"},
		{"an unknown column", shardOf(t, "rewards", "1", zstd, extra{rewardsBefore: before()}),
			fmt.Sprintf("column bonus is not in schema version %d", Version)},
		{"a column of another type", shardOf(t, "rewards", "1", zstd, retyped{}),
			"column level is required INT(64,true), want required INT(32,true)"},
		{"nulls where none may be", shardOf(t, "rewards", "1", zstd, nullable{}),
			"column group_id is nullable STRING, want required STRING"},
		{"another compression", shardOf(t, "rewards", "1", parquet.Compression(&parquet.Snappy), before()),
			"compressed by SNAPPY"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Decode[RewardRow](test.data)
			require.ErrorContains(t, err, test.text)
			require.ErrorContains(t, err, "decode table rewards")
		})
	}
}
