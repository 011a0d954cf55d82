package toolcall

// toolCalls is the form of models whose templates put a list between plain tags.
var toolCalls = Form{
	Name: "tool_calls", Also: []string{"hunyuan_a13b", "jamba", "minimax_m1", "minimax", "apriel"},
	Families: "Hunyuan A13B, Jamba, MiniMax M1, Apriel",
	Example:  `<tool_calls>[{"name": "f", "arguments": {"k": "v"}}]</tool_calls>`,
	Marks:    []string{toolCallsObjects.open}, read: toolCallsObjects.read, write: toolCallsObjects.write,
}

var toolCallsObjects = objects{open: "<tool_calls>", close: "</tool_calls>", name: []string{"name"},
	arguments: []string{"arguments"}, list: true}
