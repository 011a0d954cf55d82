package toolcall

// nemotron is the form of Nemotron Nano 2: a list of objects in a tag of its own.
var nemotron = Form{
	Name: "nemotron_nano2", Families: "Nemotron Nano 2",
	Marks: []string{"<TOOLCALL>"},
	grammar: objects{open: "<TOOLCALL>", close: "</TOOLCALL>", name: "name",
		arguments: []string{"arguments"}, list: true},
}
