package toolcall

import (
	"regexp"
	"strings"
)

// gemma is the form of Gemma 4: keys without quotes, in the order of their letters, and texts between marks. Results
// come back in the model's own turn.
var gemma = Form{
	Name: "gemma4", Families: "Gemma 4, FunctionGemma",
	Example: `<|tool_call>call:f{k:<|"|>v<|"|>}<tool_call|>`,
	Marks:   []string{gemmaMark}, Think: [2]string{"<|channel>thought\n", "<channel|>"},
	Stops: []string{"<|tool_response>"},
	read:  readGemma, write: writeGemma,
}

const (
	gemmaMark  = "<|tool_call>call:"
	gemmaQuote = `<|"|>`
)

var gemmaHead = regexp.MustCompile(`^<\|tool_call>call:\s*([\pL\pN_.:-]+)\s*`)

func readGemma(text string, _ []Tool, ended bool) reading {
	m := gemmaHead.FindStringSubmatch(text)
	if m == nil {
		return reading{open: unfinished(text) && strings.TrimSpace(text[len(gemmaMark):]) == ""}
	}
	l := &literals{text: text, at: len(m[0]), quote: gemmaQuote}
	if strings.HasPrefix(text[l.at:], "{") {
		if raw, ok := l.mapping(0); ok {
			c := checked(Call{Name: m[1], Arguments: raw})
			switch {
			case l.skip("<tool_call|>"), ended && strings.TrimSpace(text[l.at:]) == "",
				strings.HasPrefix(text[l.at:], gemmaMark):
				return reading{calls: []Call{c}, n: l.at}
			}
		}
	}
	if end := strings.Index(text, "<tool_call|>"); end >= 0 && ended {
		return reading{n: end + len("<tool_call|>"), calls: []Call{{Name: m[1], Arguments: text[len(m[0]):end],
			Fault: "the arguments cannot be read"}}}
	}
	if len(text) == len(m[0]) {
		return reading{open: true} // the name may go on
	}
	return reading{open: true, begun: &Call{Name: m[1]}}
}

func writeGemma(name, arguments string) string {
	return "<|tool_call>call:" + name + gemmaText(arguments) + "<tool_call|>"
}

// gemmaText writes a JSON value.
func gemmaText(value string) string {
	if s, text := unquoted(value); text {
		return gemmaQuote + s + gemmaQuote
	}
	var parts []string
	switch value[0] {
	case '{':
		for _, f := range fieldsOf(value) {
			parts = append(parts, f.name+":"+gemmaText(f.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		for _, v := range itemsOf(value) {
			parts = append(parts, gemmaText(v))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return value
}
