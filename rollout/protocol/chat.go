package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/jinja"
)

// Chat is the protocol of a published model's own chat template. A system message holds the instruction, the user's
// message the task, and the model answers as it was trained to. Calls are JSON objects in <tool_call> tags, as the
// models of the template's family write them. The final answer is in the last box or, without a box, the last
// response's text after its reasoning.
//
// Later contexts are what the template puts between a response and the next one. A response's own tokens stay as they
// were sampled. So a template must not write earlier turns differently once others follow: With refuses one that does.
//
// The zero value has the template of ChatML, for models that are made here.
type Chat struct {
	bound *chatTemplate
	// System is the instruction of the recipe; "" if there is none.
	System string
}

// chatTemplate is a model's template and what was found out about it.
type chatTemplate struct {
	template, tools *jinja.Template
	special         map[string]string
	end             string   // ends a turn of the policy
	ends            []string // further tokens that end a response
	opening         string   // the tag of reasoning with which the template begins each response; "" if there is none
	marks           []string
}

// ChatModel is what Chat needs of a model.
type ChatModel struct {
	// Template is the chat template, and ToolTemplate that of conversations with tools; "" if it is the same.
	Template, ToolTemplate string
	Special                map[string]string // special tokens by the names that templates know them by
	Added                  []string          // the tokenizer's added tokens
	Ends                   []string          // added tokens that the model's configuration ends responses with
}

// ChatML is the template of models that are made here.
const ChatML = `{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}` +
	`{%- if loop.first and tools and m.role == 'system' %}{{ m.content + '\n\n# Tools\n\n<tools>\n' }}` +
	`{%- for t in tools %}{{ t | tojson + '\n' }}{% endfor %}{{ '</tools>' }}{% else %}{{ m.content or '' }}` +
	`{%- endif %}` +
	`{%- for c in m.tool_calls or [] %}{{ '<tool_call>\n{"name": ' + c.function.name | tojson }}` +
	`{{- ', "arguments": ' + c.function.arguments | tojson + '}\n</tool_call>' }}{% endfor %}` +
	`{{- '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// probe is text that no template holds, to find where a template puts a message.
const probe = "c0ntent of n0 c0nversati0n"

// With binds the protocol to a model. It refuses a template that cannot be parsed or rendered, that does not end a turn
// of the assistant with an added token, or that writes earlier turns differently once others follow.
func (c Chat) With(m ChatModel) (Chat, error) {
	if m.Template == "" {
		return c, errors.New("the model has no chat template; a prompt format of its own, such as hermes, can be named")
	}
	b := &chatTemplate{special: m.Special}
	var err error
	if b.template, err = jinja.Parse(m.Template); err != nil {
		return c, err
	}
	b.tools = b.template
	if m.ToolTemplate != "" {
		if b.tools, err = jinja.Parse(m.ToolTemplate); err != nil {
			return c, err
		}
	}
	b.marks = append(ForgeableMarks(m.Added), tagMarks("tools", "tool_call", "tool_response", "think")...)
	b.marks = distinctTexts(append(b.marks, boxOpen))
	c.bound = b
	if b.end, err = c.findEnd(m.Added); err != nil {
		return c, err
	}
	for _, end := range m.Ends {
		if end != b.end {
			b.ends = append(b.ends, end)
		}
	}
	// A template that refuses this conversation refuses the run's prompts too, with its reason.
	if prompt, err := c.render([]any{message("user", probe)}, nil, true); err == nil {
		_, begun, _ := strings.Cut(prompt, probe)
		if at := strings.LastIndex(begun, thinkOpen); at > strings.LastIndex(begun, thinkClose) {
			b.opening = begun[at:]
		}
	}
	return c, nil
}

// CheckTools refuses a template that writes earlier turns differently once the results of calls follow. CheckCalls is
// about the calls themselves.
func (c Chat) CheckTools(tools []Tool) error {
	for _, response := range []string{"<think>\na\n</think>\n\n" + probe, probe} {
		v := View{Task: "a", Tools: tools, Turn: 1, Rounds: []Round{{Response: response, Bodies: []string{"b"}}}}
		if _, err := c.Render(v); err != nil {
			return err
		}
		v = View{Task: "a", Tools: tools, Turn: 2, Rounds: []Round{{Response: response, Bodies: []string{"b", "c"}},
			{Response: response, Bodies: []string{"d"}}}}
		if _, err := c.Render(v); err != nil {
			return err
		}
	}
	return nil
}

// findEnd finds the added token that the template writes after an assistant's message.
func (c Chat) findEnd(added []string) (string, error) {
	text, err := c.render([]any{message("user", "a"), message("assistant", probe)}, nil, false)
	if err != nil {
		return "", err
	}
	_, after, found := strings.Cut(text, probe)
	if !found {
		return "", errors.New("the chat template does not write what an assistant's message says")
	}
	after = strings.TrimLeft(after, " \n")
	end := ""
	for _, token := range added {
		if strings.HasPrefix(after, token) && len(token) > len(end) && strings.TrimSpace(token) != "" {
			end = token
		}
	}
	if end == "" {
		return "", fmt.Errorf("the chat template ends a turn of the assistant with %.40q, which begins with no token "+
			"of its own", after)
	}
	return end, nil
}

// ForgeableMarks returns the added tokens that text from outside could forge.
func ForgeableMarks(added []string) (out []string) {
	for _, token := range added {
		if token = strings.TrimSpace(token); len([]rune(token)) > 1 {
			out = append(out, token)
		}
	}
	return out
}

func distinctTexts(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// parts returns the template that the protocol has.
func (c Chat) parts() *chatTemplate {
	if c.bound != nil {
		return c.bound
	}
	return ownChat
}

// ownChat is the template of models that are made here.
var ownChat = func() *chatTemplate {
	t, err := jinja.Parse(ChatML)
	if err != nil {
		panic(err)
	}
	return &chatTemplate{template: t, tools: t, end: EndOfTurn,
		marks: append(tagMarks("tools", "tool_call", "tool_response", "think"), boxOpen)}
}()

// Spec describes the protocol.
func (c Chat) Spec() Spec {
	p := c.parts()
	return Spec{
		Name: "chat", Doc: "the model's own chat template, with JSON calls of the tools that it lists",
		Source: "chat templates in Jinja, as transformers renders them",
		Form: "it ends its turn and holds either closed <tool_call> blocks with no text after the first of them, or " +
			"no call and a text",
		EndOfTurn: p.end, Stops: p.ends, Tags: []string{"tool_call"}, Opening: p.opening, Answer: AnswerText,
		Tools: true, Marks: p.marks,
	}
}

// Added lists the fixed strings of models that are made here.
func (Chat) Added() []string {
	added := []string{EndOfTurn, systemOpen, promptOpen, "<|im_start|>tool\n", "<|im_start|>assistant\n", replyOpen,
		callTag, callTagClose, hermesCallOpen, hermesArguments, hermesCallClose, thinkOpen, thinkClose, boxOpen,
		prefixDecode, prefixTool, noOutput, truncated}
	return append(added, pythonText...)
}

// message is a message of a conversation.
func message(role, content string) *jinja.Dict {
	return jinja.NewDict("role", role, "content", content)
}

// render renders a conversation.
func (c Chat) render(messages []any, tools []Tool, prompt bool) (string, error) {
	p := c.parts()
	values := jinja.NewDict("messages", messages, "add_generation_prompt", prompt, "tools", nil, "documents", nil)
	for name, token := range p.special {
		values.Set(name, token)
	}
	template := p.template
	if len(tools) > 0 {
		list := make([]any, len(tools))
		for i, t := range tools {
			v, err := jinja.From([]byte(t.Signature()))
			if err != nil {
				return "", fmt.Errorf("tool %s: %w", t.Name, err)
			}
			list[i] = jinja.Texts(v, func(s string) string { return guard(s, p.marks) })
		}
		values.Set("tools", list)
		template = p.tools
	}
	return template.Render(values, time.Time{})
}

// opening returns the messages before the first response.
func (c Chat) opening(v View) []any {
	marks := c.parts().marks
	var out []any
	if system := strings.Join(nonEmpty(c.System, v.Instruction), "\n"); system != "" {
		out = append(out, message("system", guard(system, marks)))
	}
	return append(out, message("user", guard(v.Task, marks)))
}

// Context renders the conversation before a response, as far as Render can.
func (c Chat) Context(v View) string {
	text, err := c.Render(v)
	if err != nil {
		return "" // the loop calls Render, and With and CheckTools have rendered such conversations before
	}
	return text
}

// Render is Context with the template's error.
func (c Chat) Render(v View) (string, error) {
	messages, tools := c.opening(v), orPython(v.Tools)
	if v.Turn == 0 {
		return c.render(messages, tools, true)
	}
	for i, r := range v.Rounds {
		messages = append(messages, message("assistant", c.content(r.Response)))
		if i == len(v.Rounds)-1 {
			break
		}
		messages = append(messages, results(r)...)
	}
	before, err := c.render(messages, tools, false)
	if err != nil {
		return "", err
	}
	whole, err := c.render(append(messages, results(v.Last())...), tools, true)
	if err != nil {
		return "", err
	}
	rest, same := strings.CutPrefix(whole, before)
	at := strings.LastIndex(before, c.parts().end)
	if !same || at < 0 {
		return "", errors.New("the chat template writes earlier turns differently once the results of calls follow, " +
			"so the model would be trained on text that it never saw")
	}
	return before[at+len(c.parts().end):] + rest, nil
}

// results are the messages that answer a round's calls.
func results(r Round) (out []any) {
	for i, body := range r.Bodies {
		m := message("tool", body)
		if i < len(r.Calls) && r.Calls[i].Name != "" {
			m.Set("name", r.Calls[i].Name)
		}
		m.Set("tool_call_id", fmt.Sprintf("call%05d", i)) // nine letters and digits, as Mistral's templates want
		out = append(out, m)
	}
	return out
}

// content is a response as the content of a message: without the token that ends it.
func (c Chat) content(response string) string {
	text, _ := c.cut(response)
	return text
}

// cut removes the token that ends a response.
func (c Chat) cut(response string) (text string, ended bool) {
	p := c.parts()
	for _, end := range append([]string{p.end}, p.ends...) {
		if text, ok := strings.CutSuffix(response, end); ok {
			return text, true
		}
	}
	return response, false
}

// Parse reads calls and the answer, which counts only outside calls and reasoning.
func (c Chat) Parse(response string, tools []Tool) Parsed {
	text, ended := c.cut(response)
	spec := c.Spec()
	read := spec.reason(spec.Opening + text)
	got := parseHermes(read, ended, tools)
	got.Reasoning = strings.TrimPrefix(got.Reasoning, strings.TrimPrefix(spec.Opening, thinkOpen))
	if len(got.Calls) > 0 || got.OpenCalls > 0 {
		return got
	}
	text = read.rest
	if got.HasAnswer = true; got.AnswerTags == 0 {
		got.Answer, got.AnswerTags = strings.TrimSpace(text), 1
		got.HasAnswer = got.Answer != ""
	} else {
		got.Answer, got.HasAnswer = LastBox(text)
	}
	if !ended {
		got.AnswerTags = boxes(text)
		got.HasAnswer = got.HasAnswer && got.AnswerTags > 0
	}
	got.WellFormed = ended && got.HasAnswer
	return got
}

// Body renders the result of a call.
func (c Chat) Body(l Limit, call env.ToolCall, r *Result) string {
	return plainBody(l, call, r, c.parts().marks)
}

// Write writes a call or an answer.
func (c Chat) Write(m env.Move) (string, bool) {
	p := c.parts()
	if m.Action != "" {
		return "", false
	}
	thought := m.Thought
	if p.opening != "" {
		thought = m.Thought + thinkClose
	}
	if !m.IsCall() {
		return written(c, m, thought+boxOpen+m.Answer+"}"+p.end)
	}
	name, args := arguments(m)
	if m.Broken {
		args = cutShort(args)
	}
	if !json.Valid([]byte(args)) && !m.Broken {
		return "", false
	}
	return written(c, m, thought+hermesCallOpen+name+hermesArguments+args+hermesCallClose+p.end)
}
