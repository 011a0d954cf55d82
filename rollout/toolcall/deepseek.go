package toolcall

import "regexp"

// deepSeekV3 is the form of DeepSeek V3 and R1: JSON in a fence behind the name.
var deepSeekV3 = Form{
	Name: "deepseek_v3", Also: []string{"deepseekv3", "deepseek_r1"}, Families: "DeepSeek V3 and R1",
	Marks:   []string{"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"},
	grammar: deepSeek,
}

var deepSeek = headed{open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>",
	begin: "<｜tool▁call▁begin｜>", end: "<｜tool▁call▁end｜>",
	head: regexp.MustCompile("^<｜tool▁call▁begin｜>\\s*function\\s*<｜tool▁sep｜>(?P<name>[^\n<]*)\n\\s*```(?:json)?"),
	text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>%s\n" +
		"```json\n%s\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"}

// deepSeekV31 is the form of DeepSeek V3.1: JSON behind the name.
var deepSeekV31 = Form{
	Name: "deepseek_v31", Also: []string{"deepseekv31", "deepseek_v3_1"}, Families: "DeepSeek V3.1",
	Marks: deepSeekV3.Marks,
	grammar: headed{open: deepSeek.open, close: deepSeek.close, begin: deepSeek.begin,
		head: regexp.MustCompile("^<｜tool▁call▁begin｜>(?P<name>[^\n<]*)<｜tool▁sep｜>"), end: deepSeek.end,
		text: deepSeek.open + deepSeek.begin + "%s<｜tool▁sep｜>%s" + deepSeek.end + deepSeek.close},
}
