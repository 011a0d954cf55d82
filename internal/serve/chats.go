package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// chats reads the fields of POST /v1/chat/completions.
func (s *Server) chats(f *fields, p *params) (*answer, form, *apiError) {
	m := s.o.Model
	p.budget = f.whole("max_tokens", -1, 1, math.MaxInt32)
	p.budget = f.whole("max_completion_tokens", p.budget, 1, math.MaxInt32)
	p.logProbs = f.boolean("logprobs", false)
	if p.top = f.whole("top_logprobs", 0, 0, mostTop); p.top > 0 && !p.logProbs {
		f.fail(invalid("top_logprobs", "needs logprobs"))
	}
	v := readConversation(f, m)
	if len(p.seeds) > 1 && len(p.seeds) != p.n {
		f.fail(invalid("seed", "has %d entries for %d choices", len(p.seeds), p.n))
	}
	if err := f.done(); err != nil {
		return nil, form{}, err
	}
	if m.chat == nil {
		return nil, form{}, invalid("messages", "%s", m.why).coded("no_chat_template")
	}
	text, err := m.chat.render(v, time.Now())
	if err != nil {
		return nil, form{}, asAPI(err)
	}
	if len(v.tools) > 0 {
		p.form, p.tools = cmp.Or(s.form, m.chat.Form()), toolsOf(v.tools)
		open, closing := p.form.ThinkTags()
		p.thinks = begun(text, open, closing)
	}
	a := newAnswer(p, m)
	rows, failed := p.rows(m.encode(text, false), 0, s.context, m)
	if failed != nil {
		named := "messages"
		failed.Param = &named
		return nil, form{}, failed
	}
	a.add(rows, nil)
	return a, chatForm(a, s.o.Name), nil
}

// readConversation reads the fields that the chat template renders.
func readConversation(f *fields, m *Model) (v conversation) {
	if !f.read("messages", &v.messages, "a list of messages") || len(v.messages) == 0 {
		f.fail(invalid("messages", "must be a list with at least one message"))
	}
	f.read("tools", &v.tools, "a list of tools")
	for i, raw := range v.tools {
		var t struct {
			Type     string
			Function *struct{ Name string }
		}
		if json.Unmarshal(raw, &t) != nil || t.Type != "function" || t.Function == nil || t.Function.Name == "" {
			f.fail(invalid(fmt.Sprintf("tools[%d]", i), "must be an object with the type function and a named "+
				"function"))
		}
	}
	var choice string
	switch raw, given := f.take("tool_choice"); {
	case !given:
	case json.Unmarshal(raw, &choice) != nil || choice != "auto" && choice != "none":
		f.fail(invalid("tool_choice", "must be auto or none: the server forces no call").coded("unsupported"))
	case choice == "none":
		v.tools = nil
	case len(v.tools) == 0:
		f.fail(invalid("tool_choice", "needs tools"))
	}
	f.boolean("parallel_tool_calls", true)
	v.prompt = f.boolean("add_generation_prompt", true)
	if f.read("chat_template_kwargs", &v.values, "an object") && len(v.values) > mostTemplate {
		f.fail(invalid("chat_template_kwargs", "must have at most %d names", mostTemplate))
	}
	var format struct{ Type string }
	if f.read("response_format", &format, "an object") && format.Type != "text" {
		f.fail(invalid("response_format", "only the type text is supported").coded("unsupported"))
	}
	return v
}

// chatMessage is an assistant's message, or what is new of it.
type chatMessage struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
}

// wholeMessage is a message whose content is null if it has calls alone.
type wholeMessage struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Refusal *string    `json:"refusal"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
}

type chatCall struct {
	Index    *int   `json:"index,omitempty"` // of streams, where later parts of a call have no id, type and name
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chatChoice is a choice of an answer.
type chatChoice struct {
	Index      int           `json:"index"`
	Message    *wholeMessage `json:"message,omitempty"`
	Delta      *chatMessage  `json:"delta,omitempty"`
	LogProbs   *chatLogProbs `json:"logprobs"`
	Finish     *string       `json:"finish_reason"`
	StopReason any           `json:"stop_reason,omitempty"`
	extras
}

type chatLogProbs struct {
	Content []chatToken `json:"content"`
}

type chatToken struct {
	Token   string       `json:"token"`
	LogProb float32      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     *[]chatToken `json:"top_logprobs,omitempty"`
}

// chatForm writes chats. If the request names tools, calls are taken out of the text.
func chatForm(a *answer, name string) form {
	e := newEnvelope("chatcmpl-", "chat.completion", name)
	if a.p.ids {
		e.Prompt = a.choices[0].job.row.Prefix
	}
	finders := make([]*callFinder, len(a.choices))
	for i := range finders {
		if a.p.form != nil {
			finders[i] = newFinder(a.p.form, a.p.tools, a.p.thinks, a.p.stream)
		}
	}
	return form{
		envelope: e, chunk: "chat.completion.chunk",
		opening: func(choice int) any {
			empty := ""
			return chatChoice{Index: choice, Delta: &chatMessage{Role: "assistant", Content: &empty}}
		},
		choice: func(d delta) any {
			c := a.chatChoice(d)
			text, calls := split(finders[d.choice], &d)
			written := chatCalls(e.ID, d.choice, calls, a.p.stream)
			var content *string
			if text != "" || !a.p.stream && len(calls) == 0 {
				content = &text
			}
			if a.p.stream {
				c.Delta = &chatMessage{Content: content, Calls: written}
			} else {
				c.Message = &wholeMessage{Role: "assistant", Content: content, Calls: written}
			}
			if d.finish != "" {
				c.Finish, c.StopReason = &d.finish, d.stopReason
			}
			return c
		},
	}
}

// split takes a delta's text apart. The delta's reason to end changes if there are calls.
func split(f *callFinder, d *delta) (text string, calls []call) {
	if f == nil {
		return d.text, nil
	}
	text, calls = f.push(d.text)
	if d.finish != "" {
		rest, found := f.end(d.finish == finishStop)
		if text, calls = text+rest, append(calls, found...); len(f.sent) > 0 && d.finish == finishStop {
			d.finish = finishCalls
		}
	}
	return text, calls
}

// chatChoice makes a choice without its text.
func (a *answer) chatChoice(d delta) chatChoice {
	c := chatChoice{Index: d.choice, extras: a.extras(d)}
	if a.p.logProbs {
		c.LogProbs = &chatLogProbs{Content: []chatToken{}}
		for _, t := range d.tokens {
			one := a.chatToken(t.id, *t.logProb)
			one.Top = &[]chatToken{}
			for _, other := range t.top {
				*one.Top = append(*one.Top, a.chatToken(other.Token, other.LogProb))
			}
			c.LogProbs.Content = append(c.LogProbs.Content, one)
		}
	}
	return c
}

func (a *answer) chatToken(id int32, logProb float32) chatToken {
	t := chatToken{Token: tokenText(a.m, id, a.p.idNames), LogProb: logProb, Bytes: []int{}}
	for _, b := range []byte(a.m.Tokens.Decode([]int32{id})) {
		t.Bytes = append(t.Bytes, int(b))
	}
	return t
}

func chatCalls(answer string, choice int, calls []call, stream bool) (out []chatCall) {
	for _, c := range calls {
		var one chatCall
		if c.Name != "" {
			one.ID, one.Type = fmt.Sprintf("call_%s_%d_%d", answer, choice, c.Index), "function"
		}
		one.Function.Name, one.Function.Arguments = c.Name, c.Arguments
		if stream {
			one.Index = &c.Index
		}
		out = append(out, one)
	}
	return out
}
