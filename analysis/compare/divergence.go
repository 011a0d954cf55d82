package compare

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// Divergence is the first thing that two records do not have in common.
type Divergence struct {
	Step  int    `json:"step"` // 0 before the first step
	Stage string `json:"stage"`
	Turn  *int   `json:"turn,omitempty"` // of a stage that runs turn by turn
	// Table is "checkpoint" for a policy whose files differ, and "" if only one run has the stage.
	Table string `json:"table"`
	Row   int    `json:"row"` // in the table's canonical order, from 0
	// Key names the row by the columns that identify it, in the base and in the other run; "" where one has no row.
	Key     [2]string `json:"key"`
	Columns []Column  `json:"columns"` // that differ; empty if the keys do
	// OnlyIn is 0 or 1 if only the base or only the other run has the stage.
	OnlyIn *int `json:"only_in,omitempty"`
}

// Column is a column whose values differ.
type Column struct {
	Name   string    `json:"name"`
	At     *int      `json:"at,omitempty"` // the first element of a list that differs
	Values [2]string `json:"values"`       // shortened
}

// checkpointTable is the name for a policy's files.
const checkpointTable = "checkpoint"

// diverge walks two records in the order in which their stages ran. equalSteps counts the steps before the divergence.
func diverge(ctx context.Context, a, b *analysis.Visible) (d *Divergence, equalSteps int, err error) {
	for _, step := range append([]int{analysis.NoStep}, a.Steps()...) {
		if step != analysis.NoStep && !slices.Contains(b.Steps(), step) {
			continue
		}
		left, err := a.Pieces(ctx, step)
		if err != nil {
			return nil, 0, err
		}
		right, err := b.Pieces(ctx, step)
		if err != nil {
			return nil, 0, err
		}
		d, err := divergeInStep(ctx, [2]*analysis.Visible{a, b}, [2][]analysis.Piece{left, right})
		if d != nil || err != nil {
			return d, equalSteps, err
		}
		if step != analysis.NoStep {
			equalSteps++
		}
	}
	return nil, equalSteps, nil
}

// pieceKey is what identifies a piece of a step.
type pieceKey struct {
	stage     string
	try, turn int
}

func keyOf(p analysis.Piece) pieceKey { return pieceKey{p.Stage, p.Try, p.Turn} }

// divergeInStep compares two lists of pieces. Evaluations are compared where both runs made one, since how often a run
// evaluates changes nothing else.
func divergeInStep(ctx context.Context, views [2]*analysis.Visible, pieces [2][]analysis.Piece) (*Divergence, error) {
	var at [2]map[pieceKey]bool
	for side := range pieces {
		at[side] = map[pieceKey]bool{}
		for _, p := range pieces[side] {
			at[side][keyOf(p)] = true
		}
	}
	for side := range pieces {
		pieces[side] = slices.DeleteFunc(pieces[side], func(p analysis.Piece) bool {
			return p.Stage == schema.StageEvaluate && !at[1-side][keyOf(p)]
		})
	}
	for i := range max(len(pieces[0]), len(pieces[1])) {
		for side := range pieces {
			if i < len(pieces[side]) && !at[1-side][keyOf(pieces[side][i])] {
				d := begun(pieces[side][i])
				d.OnlyIn = &side
				return &d, nil
			}
		}
		d, err := divergeInPiece(ctx, views, pieces[0][i], pieces[1][i])
		if d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// begun starts the description of a divergence in a piece.
func begun(p analysis.Piece) Divergence {
	d := Divergence{Step: max(p.Step, 0), Stage: p.Stage, Columns: []Column{}}
	if p.Turn >= 0 {
		d.Turn = &p.Turn
	}
	return d
}

// divergeInPiece compares what two runs committed at the same place.
func divergeInPiece(ctx context.Context, views [2]*analysis.Visible, a, b analysis.Piece) (*Divergence, error) {
	var tables []schema.Table
	for _, s := range slices.Concat(a.Shards, b.Shards) {
		if s.Table != schema.Documents && !slices.Contains(tables, s.Table) {
			tables = append(tables, s.Table)
		}
	}
	for _, table := range tables {
		left, right := shardsOf(a, table), shardsOf(b, table)
		if slices.EqualFunc(left, right, func(x, y analysis.Shard) bool { return x.Digest == y.Digest }) {
			continue // equal bytes
		}
		var rows [2][][]schema.Field
		var err error
		for side, shards := range [][]analysis.Shard{left, right} {
			if rows[side], err = fields(ctx, views[side], shards); err != nil {
				return nil, err
			}
		}
		d := begun(a)
		d.Table = string(table)
		if d.in(rows[0], rows[1]) {
			return &d, nil
		}
	}
	if a.Checkpoint != b.Checkpoint {
		d := begun(a)
		d.Table = checkpointTable
		d.Columns = []Column{{Name: "digest", Values: [2]string{a.Checkpoint, b.Checkpoint}}}
		return &d, nil
	}
	return nil, nil
}

func shardsOf(p analysis.Piece, table schema.Table) []analysis.Shard {
	return slices.DeleteFunc(slices.Clone(p.Shards), func(s analysis.Shard) bool { return s.Table != table })
}

// fields reads all rows of shards, whatever their table.
func fields(ctx context.Context, v *analysis.Visible, shards []analysis.Shard) ([][]schema.Field, error) {
	var out [][]schema.Field
	for _, s := range shards {
		data, err := v.Bytes(ctx, s)
		if err != nil {
			return nil, err
		}
		d, err := schema.Describe(data, math.MaxInt)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Key, err)
		}
		out = append(out, d.First...)
	}
	return out, nil
}

// in finds the first row that differs, and reports whether there is one.
func (d *Divergence) in(a, b [][]schema.Field) bool {
	for i := range max(len(a), len(b)) {
		if i < len(a) && i < len(b) && reflect.DeepEqual(a[i], b[i]) {
			continue
		}
		d.Row = i
		if i < len(a) {
			d.Key[0] = key(a[i])
		}
		if i < len(b) {
			d.Key[1] = key(b[i])
		}
		if d.Key[0] == d.Key[1] {
			d.Columns = columns(a[i], b[i])
		}
		return true
	}
	return false
}

// keyColumns are the columns that identify rows, in the tables that have them.
var keyColumns = []string{"group_id", "trajectory_id", "turn", "call", "tag", "problem_id", "sample", "greedy", "step",
	"optimizer_step", "minibatch"}

// key names a row.
func key(row []schema.Field) string {
	var words []string
	for _, f := range row {
		named := slices.Contains(keyColumns, f.Name)
		if f.Name == "problem_id" && len(words) > 0 && strings.HasPrefix(words[0], "group_id") {
			named = false // what the row is about, where the group identifies it
		}
		if named && f.Value != nil {
			words = append(words, fmt.Sprintf("%s %v", f.Name, f.Value))
		}
	}
	return strings.Join(words, ", ")
}
