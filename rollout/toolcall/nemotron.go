package toolcall

// nemotron is the form of Nemotron Nano 2: a list of objects in a tag of its own.
var nemotron = Form{
	Name: "nemotron_nano2", Families: "Nemotron Nano 2",
	Marks: []string{nemotronObjects.open}, read: nemotronObjects.read, write: nemotronObjects.write,
}

var nemotronObjects = objects{open: "<TOOLCALL>", close: "</TOOLCALL>", name: []string{"name"},
	arguments: []string{"arguments"}, list: true}
