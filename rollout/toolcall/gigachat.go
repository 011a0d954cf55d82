package toolcall

// gigaChat is the form of GigaChat 3.1: one object behind a token.
var gigaChat = Form{
	Name: "gigachat3", Families: "GigaChat 3.1",
	Marks: []string{gigaChatObjects.open}, read: gigaChatObjects.read, write: gigaChatObjects.write,
}

var gigaChatObjects = objects{open: "<|function_call|>", name: []string{"name"}, arguments: []string{"arguments"}}
