package toolcall

import (
	"fmt"
	"regexp"
	"strings"
)

// headed are forms that write a call as a head with its name and then its arguments as a JSON object.
type headed struct {
	open, close string         // around calls; "" if there is nothing around them
	begin       string         // what a call begins with
	head        *regexp.Regexp // from there to the arguments, with the groups name and perhaps id
	end         string         // a call's end, with or without the end of a fence before it; "" if there is none
	text        string         // a call as it is written, with %s for its name and its arguments
}

// write writes a call.
func (h headed) write(name, arguments string) string { return fmt.Sprintf(h.text, name, arguments) }

// read reads a block.
func (h headed) read(text string, _ []Tool, ended bool) reading {
	var out reading
	rest := strings.TrimLeft(strings.TrimPrefix(text, h.open), spaces)
	for {
		m := h.head.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		c := Call{Name: strings.TrimSpace(m[h.head.SubexpIndex("name")])}
		if i := h.head.SubexpIndex("id"); i >= 0 {
			c.ID = m[i]
		}
		n, open := h.arguments(&c, rest[len(m[0]):], ended)
		if out.open = open; open && len(rest) > len(m[0]) { // otherwise the name may go on
			out.begun = &c
		}
		if open {
			return out
		}
		out.calls = append(out.calls, c)
		rest = rest[len(m[0])+n:]
		out.n = len(text) - len(rest)
		rest = strings.TrimLeft(rest, spaces)
	}
	switch {
	case h.close != "" && strings.HasPrefix(rest, h.close) && out.n > 0:
		out.n = len(text) - len(rest) + len(h.close)
	case rest != "" && out.n > 0 && strings.HasPrefix(h.close, rest): // no further call has to follow
	case strings.HasPrefix(rest, h.begin) && unfinished(rest), rest != "" && strings.HasPrefix(h.begin, rest),
		rest == "" && out.n == 0:
		out.open = true
	}
	return out
}

// unfinished reports whether a text may be a head that is cut: it is short, and of two lines at most.
func unfinished(text string) bool {
	return len(text) < 256 && strings.Count(strings.TrimSpace(text), "\n") < 2
}

// arguments reads the arguments of a call and its end, and returns their length. open says that the text ends inside.
func (h headed) arguments(c *Call, text string, ended bool) (n int, open bool) {
	raw, n, cut := value(text)
	if n == 0 && !cut && !strings.HasPrefix(strings.TrimLeft(text, spaces), "{") {
		if length, closed := h.closing(text); closed && h.end != "" {
			c.Arguments = "{}"
			return length, false
		} else if !ended && unfinished(text) {
			return 0, true
		}
	}
	if n > 0 {
		length, closed := h.closing(text[n:])
		if c.Arguments = raw; !closed && !ended && h.cutEnd(strings.TrimSpace(text[n:])) {
			return 0, true
		}
		*c = checked(*c)
		return n + length, false
	}
	at := len(text)
	if h.end != "" {
		at = index(text, h.end, 0)
	} else if !cut {
		at = index(text, h.begin, 0)
	}
	if cut && !ended || at == len(text) && (cut || h.end != "") {
		c.Arguments = begunObject(strings.TrimLeft(text, spaces))
		return 0, true
	}
	c.Arguments, c.Fault = strings.TrimSpace(text[:at]), "the arguments are not a JSON object"
	return min(at+len(h.end), len(text)), false
}

// cutEnd reports whether a text is a part of a call's end.
func (h headed) cutEnd(text string) bool {
	behind := strings.TrimLeft(strings.TrimPrefix(text, "```"), spaces)
	return strings.HasPrefix("```", text) || strings.HasPrefix(h.end, behind)
}

// closing returns the length of a call's end, and whether it is there.
func (h headed) closing(text string) (n int, closed bool) {
	if h.end == "" {
		return 0, true
	}
	rest := strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(text, spaces), "```"), spaces)
	if rest, closed = strings.CutPrefix(rest, h.end); !closed {
		return 0, false
	}
	return len(text) - len(rest), true
}
