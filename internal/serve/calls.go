package serve

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// call is one call of a tool. In a stream it is a part of the call with its index: the first part has the name, and the
// arguments of all parts follow each other.
type call struct {
	Index           int
	Name, Arguments string
}

// callFinder separates the text of a response from its calls, which have the form that the model writes. Text before
// the first call is passed on at once, except white space and what may begin a call.
type callFinder struct {
	thoughts
	form   *toolcall.Form
	tools  []toolcall.Tool
	stream bool            // calls are passed on while they come
	space  strings.Builder // white space before held
	held   string          // a few bytes, unless a call has begun
	rest   strings.Builder // what follows the beginning of a call
	begun  bool            // whether text has been passed on
	calls  bool            // whether a call may have begun: everything else is held
	looked int             // how long the rest was when calls were last looked for
	sent   []string        // the arguments that have been passed on, of each call
	passed int             // bytes of content that have been passed on, in a form that marks the content too
}

func newFinder(form *toolcall.Form, tools []toolcall.Tool, thinks, stream bool) *callFinder {
	open, closing := form.ThinkTags()
	c := &callFinder{form: form, tools: tools, stream: stream, calls: form.Whole(),
		thoughts: thoughts{inside: thinks, over: form.Whole(), open: open, close: closing}}
	return c
}

// push adds text, and returns what is certainly no part of a call, and what is new of calls.
func (c *callFinder) push(text string) (passed string, calls []call) {
	passed, text = c.take(text)
	passed += c.spoken(text)
	// A look costs as much as the text is long, so the next one is when it has grown by a part of itself.
	if c.stream && c.calls && c.rest.Len() >= c.looked+max(leastNews, c.looked/8) {
		c.looked = c.rest.Len()
		read := c.read(c.space.String()+c.held+c.rest.String(), false)
		if c.form.Whole() {
			passed += c.content(read)
		}
		calls = c.news(read)
	}
	return passed, calls
}

// leastNews is how many bytes of calls come before they are looked at again.
const leastNews = 16

// spoken takes text outside of reasoning, and returns what is certainly no part of a call.
func (c *callFinder) spoken(text string) string {
	if c.calls {
		c.rest.WriteString(text)
		return ""
	}
	c.held = c.inner(c.held + text)
	c.skipSpace()
	if c.held == "" {
		return ""
	}
	if c.form.Bare != "" && !c.begun && strings.HasPrefix(c.held, c.form.Bare) {
		c.calls = true
		return ""
	}
	cut := len(c.held)
	for _, mark := range c.form.Marks {
		if i := strings.Index(c.held, mark); i >= 0 && i < cut {
			cut, c.calls = i, true
		}
	}
	if !c.calls {
		hold := textOut{stops: slices.Concat(c.form.Marks, c.form.Around)}
		cut -= hold.mayBegin(c.held)
	}
	cut = len(strings.TrimRightFunc(c.held[:cut], unicode.IsSpace))
	if cut == 0 {
		return ""
	}
	out := c.space.String() + c.held[:cut]
	c.space.Reset()
	c.held, c.begun = c.held[cut:], true
	c.skipSpace()
	return out
}

// inner removes the tokens around the content.
func (c *callFinder) inner(text string) string {
	for _, token := range c.form.Around {
		text = strings.ReplaceAll(text, token, "")
	}
	return text
}

// skipSpace takes white space out of the text that is looked at again with each piece.
func (c *callFinder) skipSpace() {
	start := strings.TrimLeftFunc(c.held, unicode.IsSpace)
	c.space.WriteString(c.held[:len(c.held)-len(start)])
	c.held = start
}

// end returns the rest of the text, and the rest of the calls. Something that looks like a call and is none is text. In
// a response that a limit has cut, an open call is text too.
func (c *callFinder) end(ended bool) (text string, calls []call) {
	passed := c.left()
	if !c.inside {
		passed = c.spoken(passed)
	}
	text = c.space.String() + c.held + c.rest.String()
	c.space.Reset()
	c.rest.Reset()
	c.held = ""
	read := c.read(text, ended)
	read.Begun = nil
	calls = c.news(read)
	switch {
	case c.form.Whole():
		text = c.content(read)
	case len(c.sent) > 0:
		text = read.Content
	default:
		text = c.inner(text)
	}
	return passed + text, calls
}

// read reads a text behind the content that has been passed on.
func (c *callFinder) read(text string, ended bool) toolcall.Response {
	form := *c.form
	if c.begun {
		form.Bare = ""
	}
	return form.Read(text, c.tools, false, ended)
}

// news returns what is new of the calls of a response.
func (c *callFinder) news(read toolcall.Response) (out []call) {
	all := read.Calls
	if read.Begun != nil && read.Begun.Name != "" {
		all = append(all, *read.Begun)
	}
	at := 0
	for _, one := range all {
		if one.Fault != "" {
			continue
		}
		arguments := compact(one.Arguments)
		if at == len(c.sent) {
			c.sent = append(c.sent, arguments)
			out = append(out, call{at, one.Name, arguments})
		} else if more, grows := strings.CutPrefix(arguments, c.sent[at]); grows && more != "" {
			c.sent[at] = arguments
			out = append(out, call{Index: at, Arguments: more})
		}
		at++
	}
	return out
}

// content returns what is new of the content.
func (c *callFinder) content(read toolcall.Response) string {
	text := read.Content[min(c.passed, len(read.Content)):]
	c.passed += len(text)
	return text
}

// compact removes the white space outside of the strings of JSON, which may be cut.
func compact(text string) string {
	var b strings.Builder
	for inside, i := false, 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i++
			continue
		case c == '"':
			inside = !inside
		case !inside && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// toolsOf reads the tools of a request, as far as forms of calls need them.
func toolsOf(list []json.RawMessage) []toolcall.Tool {
	out := make([]toolcall.Tool, len(list))
	for i, raw := range list {
		var t struct {
			Function toolcall.Tool
		}
		_ = json.Unmarshal(raw, &t) // readConversation has checked it
		out[i] = t.Function
	}
	return out
}
