package gsm8k

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
)

// Tables holds items as rows of the record, each table in the record's order.
type Tables struct {
	Prompts      []schema.PromptRow
	Turns        []schema.TurnRow
	ToolCalls    []schema.ToolCallRow // without results, because no call has run yet
	Trajectories []schema.TrajectoryRow
	Correct      []bool // the source's verdict on each trajectory
}

// Rows converts items into the rows of a step. Item i is group i, and its systems are the samples. A trajectory's first
// context is the question. Log-probs and entropies are null because no one recorded them. ToolErrors is 0 until the
// calls have run.
func Rows(step int, items []Item, encode func(string) []int32) (Tables, error) {
	if len(items) > schema.MaxGroups {
		return Tables{}, fmt.Errorf("make rows of %d items: a step has at most %d groups", len(items), schema.MaxGroups)
	}
	var t Tables
	for i, item := range items {
		group := schema.GroupID(step, i)
		p := schema.PromptRow{
			GroupID: group, ProblemID: digest(item.Question), Level: item.level(),
			Problem: item.Question, Answer: item.Gold, TokenIDs: encode(item.Question),
		}
		t.Prompts = append(t.Prompts, p)
		for k, trajectory := range item.Trajectories {
			t.add(p, schema.TrajectoryID(step, i, k), trajectory, encode)
		}
	}
	return t, nil
}

// level is the number of calculations in the reference solution.
func (i Item) level() int32 { return int32(len(annotation.FindAllString(i.GroundTruth, -1))) }

// add appends one trajectory's rows.
func (t *Tables) add(p schema.PromptRow, id string, from Trajectory, encode func(string) []int32) {
	row := schema.TrajectoryRow{
		GroupID: p.GroupID, TrajectoryID: id, ProblemID: p.ProblemID, Level: p.Level,
		Source: "gsm8k-solutions/" + from.System, Turns: int32(len(from.Turns)),
		AnswerTags: int32(AnswerLines(from.Text)), Finish: "no_action",
		FinalAnswer: from.FinalAnswer, HasAnswer: from.HasAnswer, Gold: p.Answer, Text: from.Text,
	}
	if from.HasAnswer {
		row.Finish = "answered"
	}
	seen := p.Problem
	for n, turn := range from.Turns {
		seen += turn.Observation
		r := turnRow(turn, n, p, encode)
		r.GroupID, r.TrajectoryID, r.AnchorHash = p.GroupID, id, digest(seen)
		r.Answered = n == len(from.Turns)-1 && from.HasAnswer
		t.Turns = append(t.Turns, r)
		for c, call := range turn.Calls {
			t.ToolCalls = append(t.ToolCalls, callRow(r, c, call))
		}
		row.ToolCalls += r.ToolCalls
		row.Tokens += int32(len(r.TokenIDs))
		row.ResponseTokens += int32(len(r.TokenIDs)) - r.ContextTokens
		seen += turn.Response
	}
	t.Trajectories = append(t.Trajectories, row)
	t.Correct = append(t.Correct, from.Correct)
}

func turnRow(turn Turn, n int, p schema.PromptRow, encode func(string) []int32) schema.TurnRow {
	context := encode(turn.Observation)
	if n == 0 {
		context = p.TokenIDs
	}
	response := encode(turn.Response)
	ids := append(append(make([]int32, 0, len(context)+len(response)), context...), response...)
	mask := make([]int32, len(ids))
	for i := len(context); i < len(mask); i++ {
		mask[i] = 1
	}
	return schema.TurnRow{
		Turn: int32(n), ContextTokens: int32(len(context)), TokenIDs: ids, LossMask: mask,
		Observation: turn.Observation, Response: turn.Response, Finish: "stop", ToolCalls: int32(len(turn.Calls)),
	}
}

func callRow(r schema.TurnRow, n int, call Call) schema.ToolCallRow {
	tool := call.Tool()
	return schema.ToolCallRow{
		GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Turn: r.Turn, Call: int32(n),
		Name: tool.Name, Arguments: tool.Arguments, Code: tool.Code,
	}
}

// digest identifies a text, independent of the file that holds it.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
