package toolcall

import (
	"regexp"
	"slices"
	"strings"
)

// elements are forms that write each argument in an element of its own, as raw text.
type elements struct {
	open, close string // around calls; "" if there is nothing around them
	// call is what begins a call, what ends its name ("" is a line end or the next element) and what ends the call. arg
	// is the same of an argument.
	call, arg [3]string
	head      *regexp.Regexp // what follows call[1]; nil: nothing
	number    string         // what is written there
	// value is what is between arg[1] and the value; its last group is true or string for a text and anything else for
	// JSON, if it has one. middle writes it for a value of a kind.
	value  *regexp.Regexp
	middle func(kind string) string
	flat   bool // no line ends are written between elements
	lines  bool // a value has lines of its own: one line end before and after it is none of its text
	json   bool // an argument without a declared type is JSON, if it can be
}

// longestName bounds where the end of a name is looked for.
const longestName = 256

var nameText = regexp.MustCompile(`^[\pL\pN_.:/-]{1,128}$`)

// read reads a block.
func (e elements) read(text string, tools []Tool, ended bool) reading {
	var out reading
	rest := text
	if e.open != "" {
		rest = strings.TrimLeft(strings.TrimPrefix(rest, e.open), spaces)
	}
	for strings.HasPrefix(rest, e.call[0]) {
		c, n, open, begun := e.one(rest, tools)
		if open {
			out.open, out.begun = true, begun
			return out
		}
		if n == 0 {
			break
		}
		out.calls = append(out.calls, c)
		rest = rest[n:]
		out.n = len(text) - len(rest)
		rest = strings.TrimLeft(rest, spaces)
		if e.open == "" {
			return out
		}
	}
	count := len(out.calls)
	switch {
	case e.open != "" && strings.HasPrefix(rest, e.close) && count > 0:
		out.n = len(text) - len(rest) + len(e.close)
	case count == 0 && strings.HasPrefix(e.call[0], rest):
		out.open = true
	case count == 0 && e.open != "" && strings.HasPrefix(text, e.open):
		return objects{open: e.open, close: e.close}.mention(text[len(e.open):], len(e.open))
	case count > 0 && rest == "" && !ended && strings.HasPrefix(text, e.open):
		out.calls, out.open, out.begun = out.calls[:count-1], true, &out.calls[count-1]
	}
	return out
}

// one reads one call, and returns its length; 0 if the text only mentions its beginning. Where the text ends inside the
// call, begun is what is certain.
func (e elements) one(text string, tools []Tool) (c Call, n int, open bool, begun *Call) {
	rest := text[len(e.call[0]):]
	name, rest, found := e.name(rest)
	switch {
	case !nameText.MatchString(name):
		return c, 0, name == "" && !found && strings.TrimSpace(rest) == "", nil
	case !found:
		return c, 0, true, nil
	}
	if e.head != nil {
		after := e.head.FindString(rest)
		if after == "" {
			return c, 0, unfinished(rest), nil
		}
		rest = rest[len(after):]
	}
	tool := find(tools, name)
	var a arguments
	begun = a.begun(name)
	for {
		rest = strings.TrimLeft(rest, spaces)
		switch {
		case strings.HasPrefix(rest, e.call[2]):
			return a.call(name), len(text) - len(rest) + len(e.call[2]), false, nil
		case e.close != "" && e.close != e.call[2] && strings.HasPrefix(rest, e.close):
			return a.call(name), len(text) - len(rest), false, nil
		case strings.HasPrefix(rest, e.arg[0]):
			begun = a.begun(name)
			after, ok := e.argument(&a, rest, tool)
			if !ok {
				return c, 0, true, begun
			}
			rest = after
		case strings.HasPrefix(e.call[2], rest) || strings.HasPrefix(e.arg[0], rest):
			return c, 0, true, begun
		default: // text between the arguments
			junk, _, closed := strings.Cut(rest[:index(rest, e.call[0], 0)], e.call[2])
			if !closed {
				return c, 0, false, nil
			}
			after := rest[len(junk)+len(e.call[2]):]
			c = a.call(name)
			c.Fault = "the call has text outside of its arguments: " + Quote(junk[:min(len(junk), 40)])
			return c, len(text) - len(after), false, nil
		}
	}
}

// name reads a name. found says that something ends it.
func (e elements) name(text string) (name, rest string, found bool) {
	if e.call[1] != "" {
		end := index(text[:min(len(text), longestName)], e.call[1], 0)
		found = end < min(len(text), longestName)
		name = strings.TrimSpace(text[:end])
		if !found {
			name = withoutBegun(name, e.call[1])
		}
		return name, text[min(end+len(e.call[1]), len(text)):], found
	}
	text = strings.TrimLeft(text, spaces)
	end := min(len(text), longestName)
	for _, stop := range []string{"\n", e.arg[0], e.call[2]} {
		end = index(text[:end], stop, 0)
	}
	return strings.TrimSpace(text[:end]), text[end:], end < len(text)
}

// withoutBegun removes the beginning of what ends a name, where the text ends inside it.
func withoutBegun(name, stop string) string {
	for n := len(stop) - 1; n > 0; n-- {
		if rest, found := strings.CutSuffix(name, stop[:n]); found {
			return rest
		}
	}
	return name
}

// argument reads one argument, and returns what follows. ok is false if the text ends inside it.
func (e elements) argument(a *arguments, text string, tool Tool) (rest string, ok bool) {
	key, rest, ok := strings.Cut(text[len(e.arg[0]):], e.arg[1])
	if !ok {
		return "", false
	}
	var kind string
	if e.value != nil {
		m := e.value.FindStringSubmatch(rest)
		if m == nil {
			return "", false
		}
		kind, rest = m[len(m)-1], rest[len(m[0]):]
	}
	key = strings.TrimSpace(key)
	end, next, ok := e.end(rest, key, tool)
	if !ok {
		return "", false
	}
	text = rest[:end]
	if e.lines {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	}
	kinds := tool.kinds(key)
	switch {
	case kind == "true" || kind == "string":
		a.add(key, Quote(text))
	case kind != "" && !slices.Contains(kinds, "string"), kinds == nil && e.json:
		a.add(key, untyped(text))
	default:
		a.add(key, typed(text, kinds))
	}
	return rest[next:], true
}

// end returns where a value ends, and where the text goes on. A closing element counts if the call goes on or ends
// behind it, so that a value may hold one. A value whose end is missing ends where the next argument begins or the call
// ends.
func (e elements) end(text, key string, tool Tool) (end, next int, ok bool) {
	for i := index(text, "<", 0); i < len(text); i = index(text, "<", i+1) {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, e.arg[2]) && goesOn(rest[len(e.arg[2]):], e.arg[0], e.call[2], e.close):
			return i, i + len(e.arg[2]), true
		case strings.HasPrefix(rest, e.arg[0]) && e.begins(rest, key, tool),
			strings.HasPrefix(rest, e.call[2]) && goesOn(rest[len(e.call[2]):], e.call[0], e.close, e.open):
			return i, i, true
		}
	}
	return 0, 0, false
}

// goesOn reports whether a text ends, or goes on with one of some tags.
func goesOn(rest string, tags ...string) bool {
	rest = strings.TrimLeft(rest, spaces)
	return rest == "" || slices.ContainsFunc(tags, func(t string) bool { return t != "" && strings.HasPrefix(rest, t) })
}

// begins reports whether another argument begins that the tool has.
func (e elements) begins(text, key string, tool Tool) bool {
	name, _, ok := strings.Cut(text[len(e.arg[0]):], e.arg[1])
	return ok && strings.TrimSpace(name) != key && nameText.MatchString(strings.TrimSpace(name)) &&
		tool.kinds(strings.TrimSpace(name)) != nil
}

// write writes a call.
func (e elements) write(name, arguments string) string {
	parts := []string{e.call[0] + name + e.call[1] + e.number}
	for _, f := range fieldsOf(arguments) {
		value, _ := unquoted(f.value)
		middle := e.arg[1]
		if e.middle != nil {
			middle += e.middle(kindOf(f.value))
		}
		if e.lines {
			value = "\n" + value + "\n"
		}
		parts = append(parts, e.arg[0]+f.name+middle+value+e.arg[2])
	}
	parts = append(parts, e.call[2])
	if e.open != "" {
		parts = append(append([]string{e.open}, parts...), e.close)
	}
	if e.flat {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, "\n")
}
