package toolcall

import (
	"regexp"
	"strings"
)

// muse is the form of Muse Glimmer: messages with recipients. One to a tool holds a call, one to self is reasoning, and
// any other is content.
var muse = Form{
	Name: "muse_glimmer", Families: "Muse Glimmer",
	Example: " to=f<|message|><atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter name=\"k\">v" +
		"</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
	Marks: []string{museElements.open, "<atem:invoke"}, Tokens: []string{"<|start|>", "<|message|>", "<|eom|>"},
	whole: readMuse,
	write: func(name, arguments string) string {
		return " to=" + name + "<|message|>" + museElements.write(name, arguments)
	},
}

var (
	museElements = elements{open: "<atem:function_calls>", close: "</atem:function_calls>",
		call: [3]string{`<atem:invoke name="`, `">`, "</atem:invoke>"},
		arg:  [3]string{`<atem:parameter name="`, `">`, "</atem:parameter>"}}
	museTo = regexp.MustCompile(`(?:^|\s)to=([^\s<]+)`)
)

// readMuse reads a response behind <|start|>assistant.
func readMuse(text string, tools []Tool, ended bool) (out Response) {
	if !strings.Contains(text, "<|message|>") && !museTo.MatchString(text) {
		out.Content = text
		return out
	}
	for rest := text; rest != ""; {
		head, body, found := strings.Cut(rest, "<|message|>")
		to := museTo.FindStringSubmatch(head)
		if to == nil {
			to = []string{"", "user"}
		}
		if !found {
			out.Open = to[1] != "self" && to[1] != "user"
			break
		}
		end := len(body)
		for _, token := range []string{"<|start|>", "<|eom|>", "<|eot|>"} {
			end = index(body[:end], token, 0)
		}
		said := body[:end]
		_, rest, _ = strings.Cut(body[end:], "<|start|>")
		switch to[1] {
		case "self":
			if !out.Reasons {
				out.Reasoning, out.Reasons = said, true
			}
			out.Thinking = end == len(body) && !ended
		case "user":
			out.say(said)
		default:
			out.addMuse(to[1], said, tools, ended || end < len(body))
		}
	}
	return out
}

// say adds content.
func (r *Response) say(text string) {
	if r.Content += text; len(r.Calls) == 0 {
		r.Before += text
	} else {
		r.After += text
	}
}

// addMuse adds the calls of a message to a tool, or notes that one is open.
func (r *Response) addMuse(to, said string, tools []Tool, whole bool) {
	got := museElements.read(said[index(said, museElements.open, 0):], tools, whole)
	r.Calls = append(r.Calls, got.calls...)
	switch {
	case got.open:
		r.Open, r.Begun = true, got.begun
	case got.n == 0 && !whole:
		r.Open = true
	case got.n == 0:
		r.Calls = append(r.Calls, Call{Name: to, Arguments: strings.TrimSpace(said),
			Fault: "the message holds no call"})
	}
}
