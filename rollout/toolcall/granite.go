package toolcall

// granite is the form of Granite 3: a list up to the end of the turn.
var granite = Form{
	Name: "granite", Families: "Granite 3", Example: `<|tool_call|>[{"name": "f", "arguments": {"k": "v"}}]`,
	Marks: []string{graniteObjects.open}, read: graniteObjects.read, write: graniteObjects.write,
}

var graniteObjects = objects{open: "<|tool_call|>", name: []string{"name"},
	arguments: []string{"arguments"}, list: true}
