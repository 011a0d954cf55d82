package toolcall

import "regexp"

// solar is the form of Solar Open: the id, the name and the arguments, each behind a token. Results name the id.
var solar = Form{
	Name: "solar_open", Families: "Solar Open", Marks: []string{"<|tool_calls|>", "<|tool_call:begin|>"},
	Stops: []string{"<|calls|>"},
	grammar: headed{open: "<|tool_calls|>", begin: "<|tool_call:begin|>", end: "<|tool_call:end|>",
		head: regexp.MustCompile(`^<\|tool_call:begin\|>(?P<id>[\pL\pN_.:-]*)<\|tool_call:name\|>` +
			`(?P<name>[\pL\pN_.:-]+)<\|tool_call:args\|>`),
		text: "<|tool_calls|><|tool_call:begin|>call00000<|tool_call:name|>%s<|tool_call:args|>%s" +
			"<|tool_call:end|>"},
}
