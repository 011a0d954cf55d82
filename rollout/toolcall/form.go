package toolcall

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tool is what a reader needs to know of a tool. Parameters is the JSON schema of its arguments.
type Tool struct {
	Name       string
	Parameters json.RawMessage
}

// Call is a call as a response holds it.
type Call struct {
	ID        string // as the model wrote it; "" if it wrote none
	Name      string
	Arguments string // a JSON object; of a call with a fault, what the model wrote instead
	Fault     string // why the call cannot be read; "" if it can be
}

// Form is a way in which models write calls.
type Form struct {
	Name     string
	Also     []string // further names, those of other programs' parsers
	Families string   // the models that write it
	// Marks are the texts that a call begins with.
	Marks []string
	// Bare is what a call without a mark begins with, at the beginning of a response; "" if all calls have marks.
	Bare string
	// Think are the tags of reasoning; "" means <think> and </think>.
	Think [2]string
	// Around are tokens around the content, which are none of it.
	Around []string
	// Tokens are further tokens that the text of calls may have.
	Tokens []string
	// Stops are tokens that end a response with calls, besides the one that ends every turn.
	Stops []string
	// ID returns the id that the form's templates want for the i-th call of an episode; nil: nine letters and digits.
	ID func(name string, i int) string

	grammar
	// whole reads a whole response, of a form that has its own way to mark content and reasoning; nil: read does.
	whole func(text string, ended bool) Response
}

// grammar reads and writes the calls of a form.
type grammar interface {
	// read reads the calls that a text begins with, at a mark or at a bare beginning. ended says that the text is whole
	// and not cut by a limit.
	read(text string, tools []Tool, ended bool) reading
	// write writes a call.
	write(name, arguments string) string
}

// reading is what a form finds where calls may begin.
type reading struct {
	calls []Call
	n     int   // bytes read; 0 = the text only mentions a mark
	open  bool  // the text ends inside a call
	begun *Call // the call that the text ends in, as far as its name and arguments are certain; nil if they are not
}

// All lists the forms. Where several read a call, the first counts.
var All = []*Form{
	&hermes, &seedOSS, &qwenCoder, &glm, &llamaJSON, &mistral, &mistralArgs, &deepSeekV3, &deepSeekV31, &dsml,
	&kimi, &kimiK3, &harmony, &miniMax, &gemma, &functionGemma, &lfm, &olmo, &cohere, &granite, &graniteCode,
	&apertus, &toolCalls, &nemotron, &miniCPM, &gigaChat, &internLM, &solar, &hunyuan3, &pythonic, &phi,
}

// Names lists the names of the forms.
func Names() []string {
	names := make([]string, len(All))
	for i, f := range All {
		names[i] = f.Name
	}
	return names
}

// Named returns the form with a name, or with that of another program's parser.
func Named(name string) (*Form, error) {
	i := slices.IndexFunc(All, func(f *Form) bool { return f.Name == name || slices.Contains(f.Also, name) })
	if i < 0 {
		return nil, fmt.Errorf("there is no form of calls %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return All[i], nil
}

// ThinkTags returns the tags of reasoning.
func (f *Form) ThinkTags() (open, close string) {
	tags := cmp.Or(f.Think, [2]string{"<think>", "</think>"})
	return tags[0], tags[1]
}

// Write writes a call whose arguments are a JSON object.
func (f *Form) Write(name, arguments string) string { return f.write(name, arguments) }

// CallID returns the id of the i-th call of an episode.
func (f *Form) CallID(name string, i int) string {
	if f.ID != nil {
		return f.ID(name, i)
	}
	return fmt.Sprintf("call%05d", i)
}

// find returns the tool with a name, or one without a schema.
func find(tools []Tool, name string) Tool {
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return tools[i]
	}
	return Tool{Name: name}
}

// Whole reports whether the form marks the content too, so that a response can only be read as a whole.
func (f *Form) Whole() bool { return f.whole != nil }

// Marked reports whether a token belongs to the text of calls and reasoning.
func (f *Form) Marked(token string) bool {
	in := func(text string) bool { return strings.Contains(text, token) }
	return token != "" && (in(f.write("f", `{"k": "v"}`)) || slices.ContainsFunc(f.Marks, in) ||
		slices.ContainsFunc(f.Tokens, in) || slices.ContainsFunc(f.Think[:], in))
}
