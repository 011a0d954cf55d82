package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	codec "github.com/ropewalk/ropewalk/schema/parquet"
)

// TestOtherReadersAgree checks that pyarrow, DuckDB and Polars read every table and return every value as it was
// written. A reader that is not installed in Python is skipped, or fails the test if ROPEWALK_REQUIRE_PYARROW (_DUCKDB,
// _POLARS) is set.
func TestOtherReadersAgree(t *testing.T) {
	folder := t.TempDir()
	shards, arrow := 0, 0 // arrow counts the Arrow files, which DuckDB does not read
	for _, c := range tableCases() {
		for name, n := range map[string]int{"empty": 0, "some": 40} {
			rows := c.rows(11, n)
			data, err := c.encode(rows, 3000) // several row groups
			require.NoError(t, err)
			base := filepath.Join(folder, string(c.table)+"-"+name)
			require.NoError(t, os.WriteFile(base+"."+c.table.Ext(), data, 0o644))
			require.NoError(t, os.WriteFile(base+".json", namedRows(t, rows), 0o644))
			shards++
			if c.table.Ext() == "arrow" {
				arrow++
			}
		}
	}
	for reader, want := range map[string]int{"pyarrow": shards, "duckdb": shards - arrow, "polars": shards} {
		t.Run(reader, func(t *testing.T) {
			python := pythontest.Need(t, strings.ToUpper(reader), reader)
			out, err := exec.Command(python, filepath.Join("testdata", "readers.py"), reader, folder).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, want, strings.Count(string(out), "rows agree"), "%s", out)
		})
	}
}

// namedRows writes rows as JSON objects whose keys are the column names, in the columns' order.
func namedRows(t *testing.T, rows any) []byte {
	var out bytes.Buffer
	out.WriteString("[")
	v := reflect.ValueOf(rows)
	for i := range v.Len() {
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("{")
		for f := range v.Index(i).NumField() {
			if f > 0 {
				out.WriteString(",")
			}
			field := v.Index(i).Field(f)
			value, err := json.Marshal(widened(field))
			if in, holed := codec.Value(v.Index(i), f).([]any); holed {
				value, err = json.Marshal(widenedWithNulls(in))
			}
			if field.Kind() == reflect.Slice && field.IsNil() && nullable(v.Type().Elem().Field(f)) {
				value = []byte("null")
			}
			require.NoError(t, err)
			fmt.Fprintf(&out, "%q:%s", columnName(v.Type().Elem().Field(f)), value)
		}
		out.WriteString("}")
	}
	out.WriteString("]")
	return out.Bytes()
}

// widened turns lists of float32 into lists of float64, so that the JSON has every digit, and a point in whole numbers.
func widened(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case []float32:
		if x == nil {
			return nil
		}
		out := make([]json.RawMessage, len(x))
		for i := range x {
			out[i] = decimal(float64(x[i]))
		}
		return out
	case float64:
		return decimal(x)
	case *float64:
		if x != nil {
			return decimal(*x)
		}
	case []int32:
		if x == nil {
			return []int32{}
		}
	}
	return v.Interface()
}

func widenedWithNulls(list []any) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, v := range list {
		out[i] = json.RawMessage("null")
		if x, ok := v.(float32); ok {
			out[i] = decimal(float64(x))
		}
	}
	return out
}

func decimal(x float64) json.RawMessage {
	text := fmt.Sprintf("%.17g", x)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.RawMessage(text)
}

// batchColumns are the names of BatchRow's columns; the Parquet rows have theirs in tags.
var batchColumns = map[string]string{"GroupID": "group_id", "TrajectoryID": "trajectory_id", "Count": "count",
	"Weight":   "weight",
	"TokenIDs": "token_ids", "LossMask": "loss_mask", "OldLogProbs": "old_logprobs", "Advantages": "advantages",
	"RolloutLogProbs": "rollout_logprobs", "ReferenceLogProbs": "reference_logprobs", "Turn": "turn",
	"Values": "values", "Returns": "returns"}

func columnName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("parquet"), ","); name != "" {
		return name
	}
	return batchColumns[f.Name]
}
