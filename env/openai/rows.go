package openai

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Tables holds tasks as rows of the record, each table in the record's order.
type Tables struct {
	Prompts      []schema.PromptRow
	Turns        []schema.TurnRow
	Trajectories []schema.TrajectoryRow
}

// Rows converts tasks into the rows of a step. Task i is group i, and its trials are the samples. A prompt holds the
// messages that its trials share. Log-probs and entropies are null because no one recorded them. ToolErrors is 0; the
// rows of the calls say which calls failed.
func Rows(step int, tasks []Task, encode func(string) []int32) Tables {
	var t Tables
	for i, task := range tasks {
		shared := task.Shared()
		p := schema.PromptRow{
			GroupID: schema.GroupID(step, i), ProblemID: task.ID, Problem: task.question(),
			TokenIDs: encode(render(shared)),
		}
		t.Prompts = append(t.Prompts, p)
		for k, trial := range task.Trials {
			t.add(p, schema.TrajectoryID(step, i, k), trial, len(shared), encode)
		}
	}
	return t
}

// add appends one trial's rows.
func (t *Tables) add(p schema.PromptRow, id string, item Item, shared int, encode func(string) []int32) {
	turns, rest := Turns(item.Messages)
	success, list, others := item.Success(), string(item.List), string(item.Rest)
	row := schema.TrajectoryRow{
		GroupID: p.GroupID, TrajectoryID: id, ProblemID: p.ProblemID, Source: item.Source, Turns: int32(len(turns)),
		Reference: &success, SourceReward: &item.Reward, Messages: &list, Item: &others,
	}
	for n, turn := range turns {
		r := turnRow(turn, n, shared, row.Text, encode)
		r.GroupID, r.TrajectoryID = p.GroupID, id
		row.ToolCalls += r.ToolCalls
		row.Tokens += int32(len(r.TokenIDs))
		row.ResponseTokens += int32(len(r.TokenIDs)) - r.ContextTokens
		row.Text += context(turn, n) + r.Response
		t.Turns = append(t.Turns, r)
	}
	last := turns[len(turns)-1].Response
	row.Finish = finish(last)
	if row.HasAnswer = row.Finish == "answered"; row.HasAnswer {
		row.FinalAnswer = last.Text
		t.Turns[len(t.Turns)-1].Answered = true
	}
	if len(rest) > 0 {
		row.Text += "\n" + render(rest)
	}
	t.Trajectories = append(t.Trajectories, row)
}

// finish says how a conversation ended, from its last response.
func finish(last Message) string {
	switch {
	case len(last.Calls) > 0:
		return "tool_calls"
	case last.Text != "":
		return "answered"
	}
	return "no_action"
}

// context renders the text before a turn's response: a line end after the previous response, the messages, and the
// generation prompt.
func context(turn Turn, n int) string {
	text := render(turn.Context) + generate
	if n > 0 {
		text = "\n" + text
	}
	return text
}

func turnRow(turn Turn, n, shared int, before string, encode func(string) []int32) schema.TurnRow {
	text, response := context(turn, n), turn.Response.response()
	ids, answer := encode(text), encode(response)
	out := schema.TurnRow{
		Turn: int32(n), ContextTokens: int32(len(ids)), TokenIDs: slices.Concat(ids, answer),
		LossMask:    slices.Concat(make([]int32, len(ids)), slices.Repeat([]int32{1}, len(answer))),
		Observation: text, Response: response, Finish: "stop", ToolCalls: int32(len(turn.Response.Calls)),
		AnchorHash: digest(before + text),
	}
	if n == 0 { // the prompt's row holds the shared part
		if out.Observation = ""; len(turn.Context) > shared {
			out.Observation = render(turn.Context[shared:]) + generate
		}
	}
	return out
}

// digest identifies a text.
func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
