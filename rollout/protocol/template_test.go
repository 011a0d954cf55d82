package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/protocoltest"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// chatMessage is one message of a chat.
type chatMessage struct{ role, content string }

// template renders a chat as text, as a model's own template does. generate adds the beginning of the next response.
type template func(messages []chatMessage, tools []protocol.Tool, generate bool) string

// llama renders messages like the template of Llama 3: a message of the assistant that calls the interpreter ends with
// <|eom_id|>, any other message with <|eot_id|>.
func llama(messages []chatMessage, tools []protocol.Tool, generate bool) string {
	header := func(role string) string { return "<|start_header_id|>" + role + "<|end_header_id|>\n\n" }
	var b strings.Builder
	b.WriteString("<|begin_of_text|>" + header("system") + "Environment: ipython\n")
	for _, t := range tools {
		b.WriteString("Tool " + t.Name + ": " + t.Description + " " + string(t.Parameters) + "\n")
	}
	b.WriteString("<|eot_id|>")
	for _, m := range messages {
		b.WriteString(header(m.role) + m.content)
		if !strings.HasSuffix(m.content, "<|eom_id|>") && !strings.HasSuffix(m.content, "<|eot_id|>") {
			b.WriteString("<|eot_id|>")
		}
	}
	if generate {
		b.WriteString(header("assistant"))
	}
	return b.String()
}

// chat is a protocol whose prompts a template renders. Its contexts are what the template adds after the last response,
// or whole prompts, as for a template that leaves out earlier reasoning.
type chat struct {
	render template
	whole  bool
}

const (
	chatEnd    = "<|eot_id|>"
	chatCall   = "<|python_tag|>"
	chatCalled = "<|eom_id|>"
)

func (c chat) Spec() protocol.Spec {
	return protocol.Spec{
		Name: "chat", Doc: "the model's own template", Form: "it ends with a program or with a box",
		EndOfTurn: chatEnd, Stops: []string{chatCalled}, Tags: []string{"|python_tag|"},
		Marks: []string{"<|", `\boxed{`}, Answer: protocol.AnswerBox, Tools: true, Whole: c.whole,
	}
}

func (chat) Added() []string {
	return []string{chatEnd, chatCall, chatCalled, "<|start_header_id|>", `\boxed{`}
}

func (c chat) Context(v protocol.View) string {
	var tools []protocol.Tool
	for _, t := range v.Tools {
		tools = append(tools, protocol.Tool{Name: harmless(t.Name), Description: harmless(t.Description),
			Parameters: json.RawMessage(harmless(string(t.Parameters)))})
	}
	messages := []chatMessage{{"user", harmless(v.Instruction + v.Task)}}
	known := "" // what the policy has seen and written
	for i, r := range v.Rounds {
		messages = append(messages, chatMessage{"assistant", r.Response})
		if i == len(v.Rounds)-1 && !c.whole {
			known = c.render(messages, tools, false)
		}
		for _, b := range r.Bodies {
			messages = append(messages, chatMessage{"ipython", b})
		}
	}
	return strings.TrimPrefix(c.render(messages, tools, true), known)
}

func (chat) Parse(response string, tools []protocol.Tool) protocol.Parsed {
	text, called := strings.CutSuffix(response, chatCalled)
	text, ended := strings.CutSuffix(text, chatEnd)
	thought, code, calls := strings.Cut(text, chatCall)
	got := protocol.Parsed{Reasoning: thought}
	switch {
	case called && calls && tools != nil && len(tools) == 0:
		got.Calls = []env.ToolCall{{Name: protocol.Python.Name, Arguments: code, Error: env.CallUnknownTool,
			Message: "there is no tool"}}
	case called && calls && strings.TrimSpace(code) != "":
		arguments, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			panic(err) // texts always encode
		}
		got.Calls = []env.ToolCall{{Name: protocol.Python.Name, Arguments: string(arguments), Code: code}}
		got.WellFormed = true
	case calls || called:
		got.Calls = []env.ToolCall{{Arguments: text, Error: env.CallDecodeError, Message: "the program is not closed"}}
	default:
		got.Reasoning, _, _ = strings.Cut(text, `\boxed{`)
		if got.Answer, got.HasAnswer = reward.LastBoxed(text); got.HasAnswer {
			got.AnswerTags = strings.Count(text, `\boxed{`)
		}
		got.WellFormed = ended && got.HasAnswer
	}
	return got
}

func (chat) Body(_ protocol.Limit, call env.ToolCall, r *protocol.Result) string {
	if r == nil {
		return harmless("error: " + call.Message)
	}
	return harmless("returned: " + r.Output + r.Errors + r.Reason)
}

func (c chat) Write(m env.Move) (string, bool) {
	text := m.Thought + `\boxed{` + m.Answer + "}" + chatEnd
	switch {
	case m.Action != "" || m.Tool != "" || strings.Contains(m.Thought+m.Code+m.Answer, "<|"):
		return "", false
	case m.Broken:
		text = m.Thought + chatCall + m.Code + chatEnd
	case m.IsCall():
		text = m.Thought + chatCall + m.Code + chatCalled
	}
	got := c.Parse(text, nil)
	return text, got.Reasoning == m.Thought && got.Answer == strings.TrimSpace(m.Answer) && got.AnswerTags <= 1 &&
		(got.WellFormed || m.Broken)
}

// harmless keeps text from outside apart from the template's special tokens and from boxes.
func harmless(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.ReplaceAll(strings.ReplaceAll(text, "<|", "< |"), `\boxed{`, `\ boxed{`)
}

// A protocol whose prompts come from a model's own template fits the contract, with contexts that go on after the last
// response and with whole prompts.
func TestATemplateFitsTheContract(t *testing.T) {
	t.Run("goes on", func(t *testing.T) { protocoltest.Run(t, chat{render: llama}) })
	t.Run("whole", func(t *testing.T) { protocoltest.Run(t, chat{render: llama, whole: true}) })
}
