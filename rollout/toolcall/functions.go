package toolcall

import (
	"cmp"
	"regexp"
	"strings"
)

// functions are forms that write calls as a programming language does: name(argument=value, …).
type functions struct {
	open, close string // of a block
	list        bool   // the calls are a list in square brackets; otherwise each has a line
	bare        bool   // calls are written without open and close
}

var (
	functionHead = regexp.MustCompile(`^[\pL_][\pL\pN_.-]*\(`)
	functionCut  = regexp.MustCompile(`^\[[\pL\pN_.-]*$`)
	argumentCut  = regexp.MustCompile(`^[\pL\pN_]*\s*$`)
	argumentHead = regexp.MustCompile(`^([\pL_][\pL\pN_]*)\s*=`)
)

// read reads a block.
func (f functions) read(text string, _ []Tool, ended bool) reading {
	body, marked := strings.CutPrefix(text, f.open)
	l := &literals{text: body}
	l.skip("")
	start := len(text) - len(body)
	if f.list && !l.skip("[") {
		return reading{open: marked && strings.TrimSpace(body) == ""}
	}
	var out reading
	for l.skip(""); ; l.skip("") {
		head := functionHead.FindString(body[l.at:])
		if head == "" {
			break
		}
		l.at += len(head)
		c, ok := l.call(strings.TrimSuffix(head, "("))
		if !ok {
			return f.broken(out, body, start, marked, ended, c)
		}
		out.calls = append(out.calls, c)
		if out.n = start + l.at; f.list && !l.skip(",") {
			break
		}
	}
	switch {
	case f.list && l.skip("]") && len(out.calls) > 0:
		out.n = start + l.at
	case len(out.calls) == 0 && !(marked && unfinished(body)):
		return reading{open: !ended && functionCut.MatchString(body)}
	case f.list && !marked && strings.TrimSpace(body[l.at:]) != "":
		return reading{}
	case f.list || len(out.calls) == 0:
		return f.broken(reading{}, body, start, true, ended, Call{})
	}
	if l.skip(f.close) {
		out.n = start + l.at
	} else if strings.TrimSpace(body[l.at:]) == "" && !ended {
		out.open, out.calls = true, out.calls[:len(out.calls)-1]
	}
	return out
}

// broken is a call that cannot be read: it is cut, or its block is closed.
func (f functions) broken(out reading, body string, start int, marked, ended bool, c Call) reading {
	inside, _, closed := strings.Cut(body, f.close)
	switch {
	case closed && ended:
		c.Arguments, c.Fault = strings.TrimSpace(inside), "the call is no function with named arguments"
		out.calls, out.n = append(out.calls, c), start+len(inside)+len(f.close)
	case marked || c.Name != "":
		out.open = true
		if c.Name != "" {
			out.begun = &c
		}
	}
	return out
}

// call reads a call behind its opening bracket. The call is what is certain if ok is false.
func (l *literals) call(name string) (c Call, ok bool) {
	var a arguments
	ok = l.list(")", func() bool {
		l.skip("")
		m := argumentHead.FindStringSubmatch(l.text[l.at:])
		if m == nil {
			if len(a.names) == 0 && !argumentCut.MatchString(l.text[l.at:]) {
				name = "" // perhaps a text
			}
			return false
		}
		l.at += len(m[0])
		v, ok := l.value(0)
		if ok {
			a.add(m[1], v)
		}
		return ok
	})
	if !ok {
		return *a.begun(name), false
	}
	return a.call(name), true
}

// pythonWords are the words of JSON in Python.
var pythonWords = map[string]string{"true": "True", "false": "False", "null": "None"}

// write writes a call.
func (f functions) write(name, arguments string) string {
	parts := []string{}
	for _, field := range fieldsOf(arguments) {
		parts = append(parts, field.name+"="+cmp.Or(pythonWords[field.value], field.value))
	}
	text := name + "(" + strings.Join(parts, ", ") + ")"
	switch {
	case f.bare:
		return "[" + text + "]"
	case f.list:
		return f.open + "[" + text + "]" + f.close
	}
	return f.open + "\n" + text + "\n" + f.close
}
