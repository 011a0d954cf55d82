package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/jinja"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// Chat is the protocol of a published model's own chat template. A system message holds the instruction, the user's
// message the task, and the model answers as it was trained to. Calls have the form that the template writes them in
// (package toolcall). The final answer is in the last box or, without a box, the last response's text after its
// reasoning.
//
// Later contexts are what the template puts between a response and the next one. The template sees a response as a
// message with its content, reasoning and calls, but a response's own tokens stay as they were sampled. So a template
// must not write earlier turns differently once results follow: CheckTools refuses one that does, unless each context
// is a whole prompt, in which the template writes all earlier turns.
//
// The zero value has the template of ChatML, for models that are made here.
type Chat struct {
	bound *chatTemplate
	// System is the instruction of the recipe; "" if there is none.
	System string
	// Format names the form of calls; "" is the one that the template writes.
	Format string
	// Whole renders each context as a whole prompt, for a template that Rewrites.
	Whole bool
}

// chatTemplate is a model's template and what was found out about it.
type chatTemplate struct {
	template, tools *jinja.Template
	inParts         bool // the template wants the content of messages as a list of parts
	special         map[string]string
	day             time.Time // the day that the template is told, if it insists on one
	end             string    // ends a turn of the policy
	follows         bool      // no token of a turn's own ends it: end is what begins the next one
	ends            []string  // further tokens that end a response
	opening         string    // the tag of reasoning with which the template begins each response; "" if there is none
	marks           []string
	form            *toolcall.Form // of calls; nil: calls are written in one that no form reads
	unread          bool           // no form reads them, and the recipe names one
	asUser          bool           // the template writes no results of calls, so that they are turns of the user
	argumentsAsText bool           // the template wants the arguments of calls as a text
	sample          string         // how the template writes calls
}

// fixedDay is the day of templates that cannot do without one. The same inputs give the same bytes on every day.
var fixedDay = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

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
			return c, fmt.Errorf("for tools: %w", err)
		}
	}
	c.bound = b
	if err := c.findDay(); err != nil {
		return c, err
	}
	var endless error // the form is of use without an end
	b.end, endless = c.findEnd(m.Added)
	b.form = c.findForm()
	if c.Format != "" {
		b.unread = b.form == nil
		b.form, err = toolcall.Named(c.Format)
	}
	if err != nil || endless != nil {
		return c, errors.Join(err, endless)
	}
	if b.asUser = !c.writesResults(); b.asUser {
		b.asUser = c.writesResults()
	}
	form := c.Form()
	for _, end := range slices.Concat(m.Ends, form.Stops) {
		if end != b.end && !slices.Contains(b.ends, end) &&
			(slices.Contains(m.Ends, end) || slices.Contains(m.Added, end)) {
			b.ends = append(b.ends, end)
		}
	}
	b.marks = append(ForgeableMarks(m.Added), tagMarks("tools", "tool_call", "tool_response", "think")...)
	b.marks = append(b.marks, nonEmpty(form.Think[0], form.Think[1])...)
	b.marks = append(append(b.marks, form.Marks...), boxOpen)
	b.marks = slices.DeleteFunc(b.marks, func(mark string) bool { return strings.ContainsAny(mark, " \n") })
	slices.Sort(b.marks)
	b.marks = slices.Compact(b.marks)
	// A template that refuses this conversation refuses the run's prompts too, with its reason.
	if prompt, err := c.render([]any{message("user", probe)}, nil, true); err == nil {
		_, begun, _ := strings.Cut(prompt, probe)
		open, closing := form.ThinkTags()
		if at := strings.LastIndex(begun, open); at > strings.LastIndex(begun, closing) {
			b.opening = begun[at:]
		}
	}
	return c, nil
}

// findDay finds out whether the template insists on a day, and whether it writes messages whose content is a text or
// only those whose content is a list of parts, as templates of models with images do. It refuses a template that cannot
// render the user's first message at all, before anything else is rendered: that may take the template long.
func (c Chat) findDay() (refused error) {
	for _, c.bound.inParts = range []bool{false, true} {
		rendered, written := false, false
		for _, tools := range [][]Tool{nil, {knownTool}} {
			text, err := c.render([]any{message("user", probe)}, tools, true)
			if err != nil && strings.Contains(err.Error(), "strftime_now") {
				c.bound.day = fixedDay
				text, err = c.render([]any{message("user", probe)}, tools, true)
			}
			if rendered = rendered || err == nil; !c.bound.inParts {
				refused = err
			}
			written = written || strings.Contains(text, probe)
		}
		if written {
			return nil
		}
		if rendered {
			refused = nil
		}
	}
	c.bound.inParts = false
	return refused
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

// parts returns the template that the protocol has.
func (c Chat) parts() *chatTemplate { return cmp.Or(c.bound, ownChat) }

// ownChat is the template of models that are made here.
var ownChat = func() *chatTemplate {
	t, err := jinja.Parse(ChatML)
	if err != nil {
		panic(err)
	}
	return &chatTemplate{template: t, tools: t, end: EndOfTurn, form: toolcall.All[0],
		marks: append(tagMarks("tools", "tool_call", "tool_response", "think"), boxOpen)}
}()

// Spec describes the protocol.
func (c Chat) Spec() Spec {
	p := c.parts()
	return Spec{
		Name: "chat", Doc: "the model's own chat template, with calls of tools in the form that the model has learnt",
		Source: "chat templates in Jinja, as transformers renders them",
		Form: "it ends its turn and holds either closed calls with no text after the first of them, or no call and " +
			"a text",
		EndOfTurn: p.end, Stops: p.ends, Tags: []string{"tool_call"}, Opening: p.opening, Answer: AnswerText,
		Tools: true, Marks: p.marks, Whole: c.Whole,
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

// fit returns messages as the template takes them: results of calls as turns of the user if it writes none, contents as
// lists of parts if it wants those.
func (c Chat) fit(messages []any) []any {
	p := c.parts()
	if p.asUser {
		messages = asUser(messages)
	}
	if p.inParts {
		messages = inParts(messages)
	}
	return messages
}

// asUser makes results of calls what a user says, in the words of Qwen's templates.
func asUser(messages []any) []any {
	var out []any
	var said *jinja.Dict // holds the last message, if that is a result
	for _, m := range messages {
		role, content := "", ""
		if m, is := m.(*jinja.Dict); is {
			role, content = textIn(m, "role"), textIn(m, "content")
		}
		switch result := ToolResponse(content); {
		case role != "tool":
			said, out = nil, append(out, m)
		case said == nil:
			said = message("user", result)
			out = append(out, said)
		default:
			said.Set("content", textIn(said, "content")+"\n"+result)
		}
	}
	return out
}

// textIn returns the text of a field; "" if it holds none.
func textIn(m *jinja.Dict, name string) string {
	v, _ := m.Get(name)
	text, _ := v.(string)
	return text
}

// inParts returns messages whose content is a list of parts, of which there is one.
func inParts(messages []any) []any {
	out := make([]any, len(messages))
	for i, m := range messages {
		said := jinja.Texts(m, func(s string) string { return s }).(*jinja.Dict)
		content, _ := said.Get("content")
		if content == nil {
			content = ""
		}
		said.Set("content", []any{jinja.NewDict("type", "text", "text", content)})
		out[i] = said
	}
	return out
}

// render renders a conversation.
func (c Chat) render(messages []any, tools []Tool, prompt bool) (string, error) {
	p := c.parts()
	list := make([]any, len(tools))
	for i, t := range tools {
		v, err := jinja.From([]byte(t.Signature()))
		if err != nil {
			return "", fmt.Errorf("tool %s: %w", t.Name, err)
		}
		list[i] = jinja.Texts(v, func(s string) string { return guard(s, p.marks) })
	}
	return c.Fill(messages, list, jinja.NewDict("add_generation_prompt", prompt), p.day)
}

// Fill renders messages and tools as an API has them, with further values that the template may ask for. now is the
// time that it is told.
func (c Chat) Fill(messages, tools []any, more *jinja.Dict, now time.Time) (string, error) {
	p := c.parts()
	template, values := p.template, jinja.NewDict("messages", c.fit(messages), "tools", nil, "documents", nil)
	for name, token := range p.special {
		values.Set(name, token)
	}
	if len(tools) > 0 {
		values.Set("tools", tools)
		template = p.tools
	}
	values.Add(more)
	return template.Render(values, now)
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
