package schema

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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

// selectionBefore is SelectionRow as version 1 wrote it.
type selectionBefore struct {
	GroupID       string  `parquet:"group_id"`
	TrajectoryID  string  `parquet:"trajectory_id"`
	Kept          bool    `parquet:"kept"`
	Count         int32   `parquet:"count"`
	Weight        float64 `parquet:"weight"`
	Reason        string  `parquet:"reason"`
	GroupMean     float64 `parquet:"group_mean"`
	GroupVariance float64 `parquet:"group_variance"`
	ValueScore    float64 `parquet:"value_score"`
}

func TestVersionOneKnewNoExclusions(t *testing.T) {
	row := selectionBefore{GroupID: GroupID(1, 2), TrajectoryID: TrajectoryID(1, 2, 3), Kept: true, Count: 1, Weight: 1}
	rows, err := Decode[SelectionRow](shardOf(t, "selection", "1", zstd, row))
	require.NoError(t, err)
	require.Equal(t, []SelectionRow{{GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Kept: true, Count: 1,
		Weight: 1}}, rows)
}

// updatesBefore is UpdateRow of schema version 1, before the share of clipped tokens was split.
type updatesBefore struct {
	Step          int32   `parquet:"step"`
	OptimizerStep int64   `parquet:"optimizer_step"`
	Minibatch     int32   `parquet:"minibatch"`
	Rows          int32   `parquet:"rows"`
	Tokens        int64   `parquet:"tokens"`
	Loss          float64 `parquet:"loss"`
	KL            float64 `parquet:"kl"`
	ClipFraction  float64 `parquet:"clip_fraction"`
	Entropy       float64 `parquet:"entropy"`
	RatioMax      float64 `parquet:"ratio_max"`
	GradNorm      float64 `parquet:"grad_norm"`
	LR            float64 `parquet:"lr"`
	PolicyBefore  string  `parquet:"policy_before"`
	PolicyAfter   string  `parquet:"policy_after"`
}

func TestUpdatesOfVersion1HaveNoSplitOfClippedTokens(t *testing.T) {
	data := shardOf(t, "updates", "1", zstd, updatesBefore{Step: 1, ClipFraction: 0.25, PolicyBefore: "p"})
	rows, err := Decode[UpdateRow](data)
	require.NoError(t, err)
	require.Equal(t, []UpdateRow{{ClipFraction: 0.25, PolicyBefore: "p", Entropy: new(0.0), GradNorm: new(0.0)}}, rows,
		"the key has the step")
	require.NoError(t, AuditShard(Updates, data, 1))
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

// timingsBefore is TimingRow as version 4 wrote it, without its nullable columns.
type timingsBefore struct {
	Stage        string  `parquet:"stage"`
	Shard        int32   `parquet:"shard"`
	Turn         int32   `parquet:"turn"`
	Kind         string  `parquet:"kind"`
	TrajectoryID string  `parquet:"trajectory_id"`
	Call         int32   `parquet:"call"`
	StartMicros  int64   `parquet:"start_micros"`
	EndMicros    int64   `parquet:"end_micros"`
	QueueSeconds float64 `parquet:"queue_seconds"`
	CPUSeconds   float64 `parquet:"cpu_seconds"`
	Attempt      int32   `parquet:"attempt"`
	Host         string  `parquet:"host"`
	Rows         int64   `parquet:"rows"`
	Tokens       int64   `parquet:"tokens"`
}

func TestTimingsOfVersion4AreRead(t *testing.T) {
	row := timingsBefore{Stage: "rollout", Kind: "activity", StartMicros: 5, EndMicros: 7, Host: "h"}
	data := shardOf(t, "timings", "4", zstd, row)
	rows, err := Decode[TimingRow](data)
	require.NoError(t, err)
	require.Equal(t, []TimingRow{{Stage: "rollout", Kind: "activity", StartMicros: 5, EndMicros: new(int64(7)),
		Host: "h"}}, rows)
	require.NoError(t, AuditShard(Timings, data, 1))
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

// testdata/v1 holds a file of version 1, before imported conversations had columns of their own.
func TestTrajectoriesOfVersion1AreRead(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "v1", "trajectories.parquet"))
	require.NoError(t, err)
	rows, err := Decode[TrajectoryRow](data)
	require.NoError(t, err)
	require.Len(t, rows, 12)
	for _, r := range rows {
		require.NoError(t, r.Validate())
		require.NotEmpty(t, r.Source)
		require.Nil(t, r.SourceReward)
		require.Nil(t, r.Messages)
		require.Nil(t, r.Item)
	}
}

// testdata/v2 holds files of version 2, before the stage logprobs.
func TestFilesOfVersion2AreRead(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "v2", "batch.arrow"))
	require.NoError(t, err)
	batch, err := DecodeBatch(data)
	require.NoError(t, err)
	require.Len(t, batch, 12)
	require.NoError(t, AuditShard(Batch, data, 12))
	some := false
	for _, r := range batch {
		some = some || r.OldLogProbs != nil
		require.Nil(t, r.RolloutLogProbs)
		require.Nil(t, r.ReferenceLogProbs)
	}
	require.True(t, some)
	described, err := Describe(data, 1)
	require.NoError(t, err)
	require.Equal(t, 2, described.SchemaVersion)
	require.Len(t, described.Columns, 8)

	data, err = os.ReadFile(filepath.Join("testdata", "v2", "updates.parquet"))
	require.NoError(t, err)
	updates, err := Decode[UpdateRow](data)
	require.NoError(t, err)
	require.Len(t, updates, 12)
	for _, r := range updates {
		require.Nil(t, r.ReferenceKL)
	}
}
