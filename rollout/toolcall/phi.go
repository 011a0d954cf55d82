package toolcall

// phi is the form of Phi-4-mini and xLAM: a list that is all of the response.
var phi = Form{
	Name: "phi4_mini_json", Also: []string{"phi4_mini", "xlam"}, Families: "Phi-4-mini, xLAM",
	Marks: []string{phiObjects.open}, Bare: []string{"["}, read: phiObjects.read,
	write: objects{name: phiObjects.name, arguments: phiObjects.arguments, list: true}.write,
}

var phiObjects = objects{open: "functools", name: []string{"name"}, arguments: []string{"arguments", "parameters"}}
