package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The record's format has a version, MAJOR.MINOR. A minor version adds tables, nullable columns and fields of
// documents, and a reader of an earlier minor version reads the rest. A major version may change anything, and a reader
// of an earlier one refuses it.
//
// Minor version 2 added excluded to turns, tool_calls, trajectories and selection; source_reward, messages and item to
// trajectories; the clip fractions by sign to updates. 3 added the tables token_outputs, gradings, replay, baselines
// and replay_batch; what turns parsed; masks; turns and critics in batch; the critic and the advantages in updates. 4
// added the use of devices to timings, and the table transitions. 5 added the tables imported and evaluation_*; the
// episode and its written tokens to evaluations; epoch and batch_rows to updates; shared to timings, where end_micros
// became nullable; it writes no column step in updates any more, because the key of the shard has the step. 6 added
// open_calls to trajectories, imported and evaluation_trajectories. 7 added the table tasks. 8 added the tables
// judgements, function_scores, evaluation_judgements, evaluation_debates, task_answers and branches; part to prompts
// and evaluations; summary to turns; judged, the task's type, the score, exact match and F1 to evaluations; answers and
// matched to tasks; and what a world offers before training to the statistics of step 1's stage resample. The manifest
// of an evaluation may have parts. Entropies of turns may be null where log-probabilities are not, and both where the
// sampler gives none; entropy and grad_norm of updates may be null. It added the stage initial, which commits the rows
// of an evaluation with that tag. 9 added the ids of traces to timings, the lag, the content and the reasoning to
// turns, and the loss mask to token_outputs and behaviour; in these three tables numbers of tokens that have none are
// null, where they were 0; and the keys of shards from before the first step have step 0 in the place of init.
const (
	// Major is the format's major version. Manifests and heads have it as version.
	Major = 1
	// Version is the format's minor version. Manifests and heads have it as schema_version.
	Version = 9
)

// formatVersion is a version of the format.
type formatVersion struct{ major, minor int }

func (v formatVersion) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

// newer reports whether the version has tables, columns or fields that this program does not know.
func (v formatVersion) newer() bool { return v.minor > Version }

// check refuses a major version that this program does not know.
func (v formatVersion) check() error {
	if v.major != Major {
		return fmt.Errorf("format version %s is not supported by this program, which reads %d.x; upgrade ropewalk", v,
			Major)
	}
	return nil
}

// parseVersion reads the version in a shard's metadata. A number alone is the minor version of major version 1; later
// major versions are written in full.
func parseVersion(text string) (formatVersion, error) {
	major, minor, full := strings.Cut(text, ".")
	if !full {
		major, minor = "1", text
	}
	v := formatVersion{}
	var errs [2]error
	v.major, errs[0] = strconv.Atoi(major)
	v.minor, errs[1] = strconv.Atoi(minor)
	if err := errors.Join(errs[:]...); err != nil || v.major < 1 || v.minor < 0 || (v.major == 1 && v.minor < 1) {
		return formatVersion{}, fmt.Errorf("%q is not a version of the format", text)
	}
	return v, nil
}

// versionOf returns the minor version in the metadata of a table's shards: the last one that changed the table, so that
// a version that changes another table leaves the bytes of this one's shards alone. It is at least 4, because until
// then every shard had the version of the program.
func versionOf(table Table) int {
	version := max(4, describedAs(table).since)
	if row := rowOf(table); row != nil {
		for i := range row.NumField() {
			for _, tag := range []string{"since", "changed"} {
				if minor, err := strconv.Atoi(row.Field(i).Tag.Get(tag)); err == nil {
					version = max(version, minor)
				}
			}
		}
	}
	return version
}
