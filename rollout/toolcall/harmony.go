package toolcall

import (
	"regexp"
	"strings"
)

// harmony is the form of gpt-oss: messages in channels (see readHarmony). The template writes one call for each
// message.
var harmony = Form{
	Name: "openai", Also: []string{"gpt-oss", "gpt_oss", "harmony"}, Families: "gpt-oss",
	Marks: []string{"<|channel|>", " to=functions.", "to=functions."}, Stops: []string{"<|call|>", "<|return|>"},
	Tokens: []string{"<|start|>", "<|end|>", "<|call|>"}, whole: readHarmony,
	grammar: headed{text: "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>%s"},
}

var harmonyTo = regexp.MustCompile(`to=(?:functions\.)?([\pL\pN_.-]+)`)

// readHarmony reads a response of gpt-oss behind <|start|>assistant: messages in channels. A message to functions.f is
// a call, one in the channel analysis is reasoning, one in the channel final is the content.
func readHarmony(text string, ended bool) (out Response) {
	if !strings.Contains(text, "<|message|>") && !strings.Contains(text, "<|channel|>") &&
		!strings.Contains(text, "to=functions.") {
		out.Content = text
		return out
	}
	for rest := text; rest != ""; {
		head, body, found := strings.Cut(rest, "<|message|>")
		if !found {
			out.Open = strings.Contains(head, "to=functions.")
			break
		}
		to := harmonyTo.FindStringSubmatch(head)
		raw, n, cut := "", 0, false
		if to != nil {
			raw, n, cut = value(body)
		}
		end := index(body, "<|start|>", n)
		for _, token := range []string{"<|end|>", "<|call|>", "<|return|>"} {
			end = index(body[:end], token, n)
		}
		_, rest, _ = strings.Cut(body[end:], "<|start|>")
		said := body[:end]
		switch {
		case to != nil:
			out.addHarmony(Call{Name: to[1], Arguments: raw}, said, n, cut || end == len(body) && !ended)
		case strings.Contains(head, "<|channel|>analysis"):
			if !out.Reasons {
				out.Reasoning, out.Reasons = said, true
			}
			out.Thinking = end == len(body)
		default:
			out.say(said)
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

// addHarmony adds a call, or notes that it is open.
func (r *Response) addHarmony(c Call, said string, n int, cut bool) {
	switch {
	case cut:
		c.Arguments = begunObject(strings.TrimLeft(said, spaces))
		r.Open, r.Begun = true, &c
	case n == 0 || strings.TrimSpace(said[n:]) != "":
		c.Arguments, c.Fault = strings.TrimSpace(said), "the arguments are not a JSON object"
		r.Calls = append(r.Calls, c)
	default:
		r.Calls = append(r.Calls, checked(c))
	}
}
