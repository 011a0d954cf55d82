package protocol

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/env"
)

// AnswerByCalls makes the calls of a response its answer: a JSON list of {"name", "arguments"}, which is empty for a
// response without calls. No call is left to run. A response that is cut has no answer.
func (p *Parsed) AnswerByCalls(cut bool) {
	type call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	made := []call{}
	for _, c := range p.Calls {
		arguments := json.RawMessage(c.Arguments)
		if _, is := object(arguments); !is || c.Error == env.CallDecodeError {
			arguments = json.RawMessage(quoted(c.Arguments))
		}
		made = append(made, call{c.Name, arguments})
	}
	answer, err := json.Marshal(made)
	if len(p.Calls) > 0 {
		p.Message = nil // a message lists calls that run
	}
	p.Answer, p.HasAnswer, p.AnswerTags, p.Calls = string(answer), true, 1, nil
	if cut || p.OpenCalls > 0 || err != nil {
		p.Answer, p.HasAnswer, p.AnswerTags = "", false, 0
	}
}
