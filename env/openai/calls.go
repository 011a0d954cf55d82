package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
)

// Statuses of recorded calls. No call ran here, so a status describes the recorded answer.
const (
	StatusOK         = "ok"
	StatusToolError  = "tool_error"  // the answer begins with "Error", as tau-bench's tools write it
	StatusNoResponse = "no_response" // the conversation ended first
)

// CallRows returns the calls of an imported trajectory with the answers that its messages hold.
func CallRows(t schema.TrajectoryRow) ([]schema.ToolCallRow, error) {
	if t.Messages == nil {
		return nil, fmt.Errorf("read calls of trajectory %s: %w", t.TrajectoryID, errors.New("messages: is null"))
	}
	messages, err := messagesOf(json.RawMessage(*t.Messages))
	if err != nil {
		return nil, fmt.Errorf("read calls of trajectory %s: %w", t.TrajectoryID, err)
	}
	turns, _ := Turns(messages)
	var rows []schema.ToolCallRow
	for n, turn := range turns {
		for i, c := range turn.Response.Calls {
			row := schema.ToolCallRow{
				GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, Turn: int32(n), Call: int32(i),
				Name: c.Name, Arguments: c.Arguments, Status: StatusNoResponse,
			}
			if c.Answer >= 0 {
				row.Response = messages[c.Answer].Text
				row.Status = status(row.Response)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func messagesOf(list json.RawMessage) (messages []Message, err error) {
	defer catch(&err)
	return readMessages("messages", list), nil
}

func status(answer string) string {
	if strings.HasPrefix(answer, "Error") {
		return StatusToolError
	}
	return StatusOK
}
