package toolcall

import "regexp"

// solar is the form of Solar Open: the id, the name and the arguments, each behind a token. Results name the id.
var solar = Form{
	Name: "solar_open", Families: "Solar Open",
	Example: `<|tool_calls|><|tool_call:begin|>call00000<|tool_call:name|>f<|tool_call:args|>{"k": "v"}` +
		`<|tool_call:end|>`,
	Marks: []string{solarHeads.open, solarHeads.begin}, Stops: []string{"<|calls|>"}, read: solarHeads.read,
	write: func(name, arguments string) string {
		return solarHeads.open + solarHeads.begin + "call00000<|tool_call:name|>" + name + "<|tool_call:args|>" +
			arguments + solarHeads.end
	},
}

var solarHeads = headed{open: "<|tool_calls|>", begin: "<|tool_call:begin|>", end: "<|tool_call:end|>",
	head: regexp.MustCompile(`^<\|tool_call:begin\|>(?P<id>[\pL\pN_.:-]*)<\|tool_call:name\|>(?P<name>[\pL\pN_.:-]+)` +
		`<\|tool_call:args\|>`)}
