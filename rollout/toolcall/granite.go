package toolcall

// granite is the form of Granite 3: a list up to the end of the turn.
var granite = Form{
	Name: "granite", Families: "Granite 3",
	Marks: []string{graniteObjects.open}, read: graniteObjects.read, write: graniteObjects.write,
}

var graniteObjects = objects{open: "<|tool_call|>", name: []string{"name"},
	arguments: []string{"arguments"}, list: true}

// graniteCode is the form of Granite 20B for calls: one object behind a tag that has no end.
var graniteCode = Form{
	Name: "granite-20b-fc", Families: "Granite 20B for calls",
	Marks: []string{graniteCodeObjects.open}, read: graniteCodeObjects.read, write: graniteCodeObjects.write,
}

var graniteCodeObjects = objects{open: "<function_call>", name: []string{"name"}, arguments: []string{"arguments"}}
