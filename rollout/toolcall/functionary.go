package toolcall

import (
	"regexp"
	"slices"
	"strings"
)

// functionary is the form of Functionary 3.1, which Llama 3.1's own prompts for tools describe: an element that names
// the tool and holds a JSON object.
var functionary = Form{
	Name: "functionary_v31", Families: "Functionary 3.1, Llama 3.1",
	Example: `<function=f>{"k": "v"}</function>`,
	Marks:   []string{"<function="}, Stops: []string{"<|eom_id|>"}, read: functionaryHeads.read,
	write: func(name, arguments string) string { return "<function=" + name + ">" + arguments + "</function>" },
}

var functionaryHeads = headed{begin: "<function=", end: "</function>",
	head: regexp.MustCompile(`^<function=(?P<name>[\pL\pN_.:-]+)>`)}

// functionary32 is the form of Functionary 3.2: parts with recipients, of which the prompt has written the first one's
// beginning. The recipient all gets content, and python a program that is no JSON.
var functionary32 = Form{
	Name: "functionary_v32", Families: "Functionary 3.2", Example: "f\n{\"k\": \"v\"}",
	Marks: []string{">>>"}, whole: readFunctionary,
	write: func(name, arguments string) string { return name + "\n" + arguments },
}

var functionaryPart = regexp.MustCompile(`(?:^|>>>)([\pL\pN_.-]+)\n`)

// readFunctionary reads a response behind ">>>".
func readFunctionary(text string, tools []Tool, ended bool) (out Response) {
	var parts [][]int // beginning and end of the recipient with what is around it, then of the recipient alone
	for _, at := range functionaryPart.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		known := slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == name }) || len(tools) == 0
		if at[0] == 0 || known || name == "all" || name == "python" {
			parts = append(parts, at)
		}
	}
	if len(parts) == 0 || parts[0][0] > 0 {
		if out.Open = !ended && nameText.MatchString(text); !out.Open {
			out.say(text) // without a recipient
		}
		return out
	}
	for i, at := range parts {
		end, last := len(text), i+1 == len(parts)
		if !last {
			end = parts[i+1][0]
		}
		name, body := text[at[2]:at[3]], text[at[1]:end]
		raw, n, cut := value(body)
		switch {
		case name == "all":
			out.say(body)
		case name == "python" && !strings.HasPrefix(body, "{") && (ended || !last):
			out.Calls = append(out.Calls, Call{Name: name, Arguments: `{"code": ` + quote(body) + "}"})
		default:
			out.addHarmony(Call{Name: name, Arguments: raw}, body, n, last && !ended && (cut || n == 0))
		}
	}
	return out
}
