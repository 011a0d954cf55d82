package toolcall

// apertus is the form of Apertus: an object's only key is the tool's name.
var apertus = Form{
	Name: "apertus", Families: "Apertus",
	Marks: []string{apertusObjects.open}, read: apertusObjects.read, write: apertusObjects.write,
	Stops: []string{"<|tools_suffix|>"},
	Think: [2]string{"<|inner_prefix|>", "<|inner_suffix|>"},
}

var apertusObjects = objects{open: "<|tools_prefix|>", close: "<|tools_suffix|>", keyed: true, list: true}
