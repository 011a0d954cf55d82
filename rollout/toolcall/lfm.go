package toolcall

// lfm is the form of LFM2, LFM2.5. Its templates may leave calls out of the history.
var lfm = Form{
	Name: "lfm2", Families: "LFM2, LFM2.5", Marks: []string{"<|tool_call_start|>"},
	grammar: functions{open: "<|tool_call_start|>", close: "<|tool_call_end|>", list: true},
}
