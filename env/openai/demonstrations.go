package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Demonstration is a conversation that a policy can be trained to write: a question, calls with their recorded
// answers, and a final answer.
type Demonstration struct {
	Line     int // line of the file where it starts, from 1
	Question string
	Steps    []Step // at least one; the last one alone has no call
}

// Step is one response of a demonstration.
type Step struct {
	Text string // of the message
	Call *Call  // nil for the final answer
	Tool string // answer to the call
}

// ReadDemonstrations reads a file of conversations, a JSON list or JSON lines. Fields other than messages are ignored.
// System and developer messages are not part of a demonstration, because the prompt format has its own. The first
// conversation that is no demonstration is an error, which names the line and the message.
func ReadDemonstrations(data []byte) ([]Demonstration, error) {
	entries, err := split(data)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, errors.New("the file holds no conversation")
	}
	out := make([]Demonstration, len(entries))
	for i, e := range entries {
		if out[i], err = readDemonstration(e.text); err != nil {
			return nil, fmt.Errorf("line %d: item %d: %w", e.line, i, err)
		}
		out[i].Line = e.line
	}
	return out, nil
}

func readDemonstration(text []byte) (d Demonstration, err error) {
	defer catch(&err)
	messages := readMessages("messages", readObject("", text).need("messages"))
	for i, m := range messages {
		if m.Role == Assistant {
			d.respond(fmt.Sprintf("messages[%d]", i), messages, m)
		} else {
			d.ask(fmt.Sprintf("messages[%d]", i), m)
		}
	}
	if last := d.Steps[len(d.Steps)-1]; last.Call != nil {
		return d, fault("messages", "end without a final answer of the assistant")
	}
	return d, nil
}

// ask adds the question, and checks the place of other messages that are no response.
func (d *Demonstration) ask(path string, m Message) {
	switch {
	case (m.Role == System || m.Role == Developer) && len(d.Steps) > 0:
		panic(fault(path+".role", "is %s after a response", m.Role))
	case m.Role == User && d.Question != "":
		panic(fault(path+".role", "is a second message of the user; a demonstration has one question"))
	case m.Role == User && strings.TrimSpace(m.Text) == "":
		panic(fault(path+".content", "is blank"))
	case m.Role == User:
		d.Question = m.Text
	}
}

// respond adds a response.
func (d *Demonstration) respond(path string, messages []Message, m Message) {
	switch {
	case d.Question == "":
		panic(fault(path+".role", "is assistant before any question"))
	case len(d.Steps) > 0 && d.Steps[len(d.Steps)-1].Call == nil:
		panic(fault(path+".role", "is assistant after the final answer"))
	case len(m.Calls) > 1:
		panic(fault(path+".tool_calls", "holds %d calls; a demonstration has one call in a response", len(m.Calls)))
	case len(m.Calls) == 0 && strings.TrimSpace(m.Text) == "":
		panic(fault(path+".content", "is blank, and there is no call"))
	case len(m.Calls) == 0:
		d.Steps = append(d.Steps, Step{Text: m.Text})
		return
	}
	c := m.Calls[0]
	if c.Answer < 0 {
		panic(fault(path+".tool_calls[0]", "has no answer"))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Arguments), &fields); err != nil || fields == nil {
		panic(fault(path+".tool_calls[0].function.arguments", "must be a JSON object, got %.40q", c.Arguments))
	}
	d.Steps = append(d.Steps, Step{Text: m.Text, Call: &c, Tool: messages[c.Answer].Text})
}
