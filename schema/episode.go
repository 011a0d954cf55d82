package schema

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// EpisodeRow is one trajectory with everything about it, for programs that want one flat table. It joins what the
// record keeps in prompts, turns, tool_calls, trajectories, rewards, selection and batch. It is an export and not a
// table of the record: no stage reads it.
type EpisodeRow struct {
	Run            string   `parquet:"run,dict"`
	Step           int32    `parquet:"step"`
	GroupID        string   `parquet:"group_id,dict"`
	TrajectoryID   string   `parquet:"trajectory_id"`
	ProblemID      string   `parquet:"problem_id,dict"`
	Level          int32    `parquet:"level"`
	Source         string   `parquet:"source,dict"`
	Problem        string   `parquet:"problem,dict"`
	Answer         string   `parquet:"answer,dict"` // gold; "" if there is none
	FinalAnswer    string   `parquet:"final_answer"`
	HasAnswer      bool     `parquet:"has_answer"`
	Finish         string   `parquet:"finish,dict"`
	Reward         float64  `parquet:"reward,split"`
	Success        bool     `parquet:"success"`
	Verdict        string   `parquet:"verdict,dict"`
	Kept           bool     `parquet:"kept"`
	Reason         string   `parquet:"reason,dict"` // why it was dropped; "" when kept
	Count          int32    `parquet:"count"`
	Weight         float64  `parquet:"weight,split"`
	Advantage      *float64 `parquet:"advantage,optional"` // before its weight; null if it is not in the batch
	TurnCount      int32    `parquet:"turn_count"`
	ToolCallCount  int32    `parquet:"tool_call_count"`
	ToolErrorCount int32    `parquet:"tool_error_count"`
	Tokens         int32    `parquet:"tokens"`
	ResponseTokens int32    `parquet:"response_tokens"`
	PolicyVersion  string   `parquet:"policy_version,dict"`
	Messages       string   `parquet:"messages"`      // a JSON list in OpenAI's chat format
	Item           *string  `parquet:"item,optional"` // the remaining fields of an imported conversation's source: a JSON object

	Turns []EpisodeTurn `parquet:"turns,list"`
	// The token lists hold all turns one after the other and have equal lengths.
	TokenIDs  []int32   `parquet:"token_ids,list" parquet-element:",dict"`
	LossMask  []int32   `parquet:"loss_mask,list" parquet-element:",dict"`
	LogProbs  []float32 `parquet:"logprobs,list,optional" parquet-element:",split"`  // null for imported rows
	Entropies []float32 `parquet:"entropies,list,optional" parquet-element:",split"` // null for imported rows
}

// EpisodeTurn is one turn of an episode. None of its fields, and none of a call's, has the name of a column, so that
// turns and calls can be unnested next to the columns.
type EpisodeTurn struct {
	Turn          int32         `parquet:"turn"`
	Observation   string        `parquet:"observation"`
	Response      string        `parquet:"response"`
	Finish        string        `parquet:"turn_finish,dict"`
	ContextTokens int32         `parquet:"context_tokens"`
	Tokens        int32         `parquet:"turn_tokens"`
	Summary       bool          `parquet:"summary"` // the policy wrote a summary of its episode instead of acting
	ToolCalls     []EpisodeCall `parquet:"tool_calls,list"`
}

// EpisodeCall is one tool call of a turn.
type EpisodeCall struct {
	Name      string `parquet:"name,dict"`
	Arguments string `parquet:"arguments"`
	Code      string `parquet:"code"`
	Stdin     string `parquet:"stdin"`
	Status    string `parquet:"status,dict"`
	ExitCode  int32  `parquet:"exit_code"`
	Stdout    string `parquet:"stdout"`
	Stderr    string `parquet:"stderr"`
	Result    string `parquet:"result"` // the part that the policy saw
}

// EpisodeWriter writes one Parquet file of episodes, some rows at a time. Equal rows give equal bytes if they are
// written in equal pieces.
type EpisodeWriter struct {
	w    *parquet.GenericWriter[EpisodeRow]
	size int // raw bytes of the row group in progress
}

// NewEpisodeWriter starts a file on out. Close ends the file but does not close out.
func NewEpisodeWriter(out io.Writer) *EpisodeWriter {
	return &EpisodeWriter{w: parquet.NewGenericWriter[EpisodeRow](out,
		parquet.CreatedBy("ropewalk", fmt.Sprint(Version), "export"),
		parquet.Compression(&parquet.Zstd),
		parquet.SkipPageBounds("messages"), parquet.SkipPageStatistics("messages"),
		parquet.BloomFilters(parquet.SplitBlockFilter(bloomBitsPerValue, "trajectory_id")),
	)}
}

// Write appends rows; a row group ends after the row that takes it past 64 MiB.
func (w *EpisodeWriter) Write(rows []EpisodeRow) error {
	for i := range rows {
		if _, err := w.w.Write(rows[i : i+1]); err != nil {
			return fmt.Errorf("encode episode %s: %w", rows[i].TrajectoryID, err)
		}
		if w.size += deepBytes(reflect.ValueOf(&rows[i]).Elem()); w.size < rowGroupBytes {
			continue
		}
		w.size = 0
		if err := w.w.Flush(); err != nil {
			return fmt.Errorf("encode episode %s: %w", rows[i].TrajectoryID, err)
		}
	}
	return nil
}

// Close writes the footer.
func (w *EpisodeWriter) Close() error {
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("encode episodes: %w", err)
	}
	return nil
}

// deepBytes returns a value's size before encoding and compression, including what it points to.
func deepBytes(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String:
		return 4 + v.Len()
	case reflect.Pointer:
		if v.IsNil() {
			return 1
		}
		return 1 + deepBytes(v.Elem())
	case reflect.Struct:
		size := 0
		for i := range v.NumField() {
			size += deepBytes(v.Field(i))
		}
		return size
	case reflect.Slice:
		if k := v.Type().Elem().Kind(); k != reflect.Struct {
			return 4 + v.Len()*int(v.Type().Elem().Size())
		}
		size := 4
		for i := range v.Len() {
			size += deepBytes(v.Index(i))
		}
		return size
	}
	return int(v.Type().Size())
}
