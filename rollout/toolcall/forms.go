package toolcall

import (
	"fmt"
	"regexp"
	"strings"
)

// All lists the forms. Where several read a call, the first counts.
var All = []*Form{
	// Results come back in a turn of the user, between <tool_response> tags.
	{Name: "hermes", Also: []string{"qwen25", "qwen", "qwen3", "granite4"},
		Families: "Hermes 2, Qwen2.5, Qwen3, QwQ, Granite 4, SmolLM, Reka, Exaone 4", Marks: []string{"<tool_call>"},
		grammar: objects{open: "<tool_call>", close: "</tool_call>", line: "\n", name: "name",
			arguments: []string{"arguments", "parameters"}}},
	// It has its own tags for calls and for reasoning.
	{Name: "seed_oss", Families: "Seed-OSS", Marks: []string{"<seed:tool_call>"},
		Think: [2]string{"<seed:think>", "</seed:think>"},
		grammar: elements{open: "<seed:tool_call>", close: "</seed:tool_call>", call: qwenCall,
			arg: qwenArgument}},
	// Raw values in XML. Histories write what is no text as JSON, and some write true as True. Models leave the outer
	// tag out at times.
	{Name: "qwen3_coder", Also: []string{"qwen3_xml", "qwen3_5", "nemotron3", "step3p5", "step3"},
		Families: "Qwen3-Coder, Qwen3.5 to 3.8, Nemotron 3, Step 3.5", Marks: []string{"<tool_call>", "<function="},
		grammar: elements{open: "<tool_call>", close: "</tool_call>", lines: true, call: qwenCall,
			arg: qwenArgument}},
	// A name, and keys and values in tags. A value is JSON unless it is a text. GLM-4.7 writes no line ends between
	// them. Results follow the token <|observation|>, and no other token ends a turn.
	{Name: "glm45", Also: []string{"glm47", "glm46", "glm", "glm4_moe", "laguna"},
		Families: "GLM-4.5, 4.6 and 4.7, Laguna, Ling 3, Spark 2.5", Marks: []string{"<tool_call>"},
		Stops: []string{"<|observation|>", "<|user|>"},
		grammar: elements{call: [3]string{"<tool_call>", "", "</tool_call>"}, json: true,
			arg: [3]string{"<arg_key>", "</arg_key>", "</arg_value>"}, value: regexp.MustCompile(`^\s*<arg_value>()`),
			middle: func(string) string { return "\n<arg_value>" }}},
	// An object that is all of the response, with or without a mark before it and with semicolons between several.
	{Name: "llama3_json", Also: []string{"llama3", "llama4_json", "llama_json"},
		Families: "Llama 3.1, 3.2, 3.3 and 4", Marks: []string{"<|python_tag|>"}, Bare: "{",
		Stops: []string{"<|eom_id|>"},
		grammar: objects{open: "<|python_tag|>", between: ";,", bare: true, name: "name",
			arguments: []string{"parameters", "arguments"}}},
	// A list of objects up to the end of the turn. An id has nine letters and digits.
	{Name: "mistral", Families: "Mistral 7B v0.3, Mistral Nemo, Mistral Small 3.1", Marks: []string{"[TOOL_CALLS]"},
		Think: [2]string{"[THINK]", "[/THINK]"}, Tokens: []string{"[ARGS]", "[CALL_ID]"},
		grammar: mistralCalls{func(name, arguments string) string {
			return fmt.Sprintf(`[TOOL_CALLS][{"name": %s, "arguments": %s, "id": "call00000"}]`, Quote(name), arguments)
		}}},
	// Each call has a mark, a name and its arguments. Small 3.2 writes an id between them, the others none.
	{Name: "mistral_args", Also: []string{"ministral", "devstral"}, Marks: []string{"[TOOL_CALLS]"},
		Families: "Mistral Small 3.2, Magistral, Devstral, Ministral 3", Think: [2]string{"[THINK]", "[/THINK]"},
		Tokens: []string{"[ARGS]", "[CALL_ID]"}, grammar: mistralCalls{headed{text: "[TOOL_CALLS]%s[ARGS]%s"}.write}},
	// JSON in a fence behind the name.
	{Name: "deepseek_v3", Also: []string{"deepseekv3", "deepseek_r1"}, Families: "DeepSeek V3 and R1",
		Marks: []string{deepSeekOpen, deepSeekBegin},
		grammar: headed{open: deepSeekOpen, close: deepSeekClose, begin: deepSeekBegin, end: deepSeekEnd,
			head: regexp.MustCompile("^" + deepSeekBegin + "\\s*function\\s*<｜tool▁sep｜>(?P<name>[^\n<]*)\n\\s*" +
				"```(?:json)?"),
			text: deepSeekOpen + deepSeekBegin + "function<｜tool▁sep｜>%s\n```json\n%s\n```" + deepSeekEnd +
				deepSeekClose}},
	// JSON behind the name.
	{Name: "deepseek_v31", Also: []string{"deepseekv31", "deepseek_v3_1"}, Families: "DeepSeek V3.1",
		Marks: []string{deepSeekOpen, deepSeekBegin},
		grammar: headed{open: deepSeekOpen, close: deepSeekClose, begin: deepSeekBegin, end: deepSeekEnd,
			head: regexp.MustCompile("^" + deepSeekBegin + "(?P<name>[^\n<]*)<｜tool▁sep｜>"),
			text: deepSeekOpen + deepSeekBegin + "%s<｜tool▁sep｜>%s" + deepSeekEnd + deepSeekClose}},
	// Elements whose attribute tells whether the value is a text or JSON.
	{Name: "deepseek_v32", Also: []string{"deepseekv32", "deepseek_v4", "deepseekv4"},
		Families: "DeepSeek V3.2 and V4",
		Marks:    []string{"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke"},
		grammar: dsmlCalls{elements{open: "<｜DSML｜function_calls>", close: "</｜DSML｜function_calls>", json: true,
			call:   [3]string{`<｜DSML｜invoke name="`, `">`, "</｜DSML｜invoke>"},
			arg:    [3]string{`<｜DSML｜parameter name="`, `"`, "</｜DSML｜parameter>"},
			value:  regexp.MustCompile(`^(?:\s*string="(true|false)")?\s*>`),
			middle: func(kind string) string { return fmt.Sprintf(` string="%t">`, kind == "string") }}}},
	// A call has an id of the tool's name and the number of the call, and results name it.
	{Name: "kimi_k2", Also: []string{"kimi"}, Families: "Kimi K2",
		Marks: []string{"<|tool_calls_section_begin|>", "<|tool_call_begin|>"},
		ID:    func(name string, i int) string { return fmt.Sprintf("functions.%s:%d", name, i) },
		grammar: headed{open: "<|tool_calls_section_begin|>", close: "<|tool_calls_section_end|>",
			begin: "<|tool_call_begin|>", end: "<|tool_call_end|>",
			head: regexp.MustCompile(`^<\|tool_call_begin\|>\s*` +
				`(?P<id>(?:functions\.)?(?P<name>[\pL\pN_.-]+?)(?::\d+)?)\s*<\|tool_call_argument_begin\|>`),
			text: "<|tool_calls_section_begin|><|tool_call_begin|>functions.%s:0<|tool_call_argument_begin|>%s" +
				"<|tool_call_end|><|tool_calls_section_end|>"}},
	// Calls are numbered. Each argument is in an element that has its type.
	{Name: "kimi_k3", Families: "Kimi K3", Marks: []string{"<|open|>tools<|sep|>", `<|open|>call tool="`},
		Think:  [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
		Around: []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"},
		grammar: elements{open: "<|open|>tools<|sep|>", close: "<|close|>tools<|sep|>", flat: true, json: true,
			call:   [3]string{`<|open|>call tool="`, `"`, "<|close|>call<|sep|>"},
			head:   regexp.MustCompile(`^(?:\s+index="\d*")?\s*<\|sep\|>`),
			number: ` index="1"<|sep|>`, arg: [3]string{`<|open|>argument key="`, `"`, "<|close|>argument<|sep|>"},
			value:  regexp.MustCompile(`^(?:\s+type="(\w*)")?\s*<\|sep\|>`),
			middle: func(kind string) string { return ` type="` + kind + `"<|sep|>` }}},
	// Messages in channels: see readHarmony. The template writes one call for each message.
	{Name: "openai", Also: []string{"gpt-oss", "gpt_oss", "harmony"}, Families: "gpt-oss",
		Marks: []string{"<|channel|>", " to=functions.", "to=functions."}, Stops: []string{"<|call|>", "<|return|>"},
		Tokens: []string{"<|start|>", "<|end|>", "<|call|>"}, whole: readHarmony,
		grammar: headed{text: "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>%s"}},
	// Raw values in XML, one element around all calls of a response.
	{Name: "minimax_m2", Also: []string{"minimax-m2"}, Families: "MiniMax M2", Marks: []string{"<minimax:tool_call>"},
		grammar: elements{open: "<minimax:tool_call>", close: "</minimax:tool_call>",
			call: [3]string{`<invoke name="`, `">`, "</invoke>"},
			arg:  [3]string{`<parameter name="`, `">`, "</parameter>"}}},
	// Keys without quotes, and texts between marks. Results come back in the model's own turn.
	{Name: "gemma4", Families: "Gemma 4", Marks: []string{"<|tool_call>call:"}, Stops: []string{"<|tool_response>"},
		Think:   [2]string{"<|channel>thought\n", "<channel|>"},
		grammar: keyed{open: "<|tool_call>call:", close: "<tool_call|>", quote: `<|"|>`}},
	// The same with other marks. Its templates write all values as texts.
	{Name: "functiongemma", Families: "FunctionGemma", Marks: []string{"<start_function_call>call:"},
		Stops: []string{"<start_function_response>"},
		grammar: keyed{open: "<start_function_call>call:", close: "<end_function_call>", quote: "<escape>",
			texts: true}},
	// Its templates may leave calls out of the history.
	{Name: "lfm2", Families: "LFM2, LFM2.5", Marks: []string{"<|tool_call_start|>"},
		grammar: functions{open: "<|tool_call_start|>", close: "<|tool_call_end|>", list: true}},
	// A call in each line, with JSON's literals.
	{Name: "olmo3", Families: "OLMo 3", Marks: []string{"<function_calls>"},
		grammar: functions{open: "<function_calls>", close: "</function_calls>"}},
	{Name: "cohere_command3", Also: []string{"command", "cohere", "cohere_command4"},
		Families: "Command R7B, Command A", Marks: []string{"<|START_ACTION|>"},
		Think:  [2]string{"<|START_THINKING|>", "<|END_THINKING|>"},
		Around: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
		grammar: objects{open: "<|START_ACTION|>", close: "<|END_ACTION|>", list: true, name: "tool_name",
			arguments: []string{"parameters"}}},
	// A list up to the end of the turn.
	{Name: "granite", Families: "Granite 3", Marks: []string{"<|tool_call|>"},
		grammar: objects{open: "<|tool_call|>", list: true, name: "name", arguments: []string{"arguments"}}},
	// One object behind a tag that has no end.
	{Name: "granite-20b-fc", Families: "Granite 20B for calls", Marks: []string{"<function_call>"},
		grammar: objects{open: "<function_call>", name: "name", arguments: []string{"arguments"}}},
	// An object's only key is the tool's name.
	{Name: "apertus", Families: "Apertus", Marks: []string{"<|tools_prefix|>"}, Stops: []string{"<|tools_suffix|>"},
		Think:   [2]string{"<|inner_prefix|>", "<|inner_suffix|>"},
		grammar: objects{open: "<|tools_prefix|>", close: "<|tools_suffix|>", keyed: true, list: true}},
	{Name: "tool_calls", Also: []string{"hunyuan_a13b", "jamba", "minimax_m1", "minimax", "apriel"},
		Families: "Hunyuan A13B, Jamba, MiniMax M1, Apriel", Marks: []string{"<tool_calls>"},
		grammar: objects{open: "<tool_calls>", close: "</tool_calls>", list: true, name: "name",
			arguments: []string{"arguments"}}},
	{Name: "nemotron_nano2", Families: "Nemotron Nano 2", Marks: []string{"<TOOLCALL>"},
		grammar: objects{open: "<TOOLCALL>", close: "</TOOLCALL>", list: true, name: "name",
			arguments: []string{"arguments"}}},
	{Name: "minicpm5", Families: "MiniCPM 5", Marks: []string{`<function name="`},
		grammar: elements{call: [3]string{`<function name="`, `">`, "</function>"},
			arg: [3]string{`<param name="`, `">`, "</param>"}}},
	// One object behind a token.
	{Name: "gigachat3", Families: "GigaChat 3.1", Marks: []string{"<|function_call|>"},
		grammar: objects{open: "<|function_call|>", name: "name", arguments: []string{"arguments"}}},
	// Objects between tokens that name the kind of action.
	{Name: "internlm", Also: []string{"internlm2"}, Families: "InternLM 2 and 2.5",
		Marks: []string{"<|action_start|><|plugin|>"},
		grammar: objects{open: "<|action_start|><|plugin|>", close: "<|action_end|>", line: "\n", name: "name",
			arguments: []string{"parameters", "arguments"}}},
	// The id, the name and the arguments, each behind a token. Results name the id.
	{Name: "solar_open", Families: "Solar Open", Marks: []string{"<|tool_calls|>", "<|tool_call:begin|>"},
		Stops: []string{"<|calls|>"},
		grammar: headed{open: "<|tool_calls|>", begin: "<|tool_call:begin|>", end: "<|tool_call:end|>",
			head: regexp.MustCompile(`^<\|tool_call:begin\|>(?P<id>[\pL\pN_.:-]*)<\|tool_call:name\|>` +
				`(?P<name>[\pL\pN_.:-]+)<\|tool_call:args\|>`),
			text: "<|tool_calls|><|tool_call:begin|>call00000<|tool_call:name|>%s<|tool_call:args|>%s" +
				"<|tool_call:end|>"}},
	// GLM's with other tags, and an element around all calls.
	{Name: "hunyuan_v3", Also: []string{"hy_v3"}, Families: "Hunyuan 3", Marks: []string{"<tool_calls:opensource>"},
		Think: [2]string{"<think:opensource>", "</think:opensource>"},
		grammar: elements{open: "<tool_calls:opensource>", close: "</tool_calls:opensource>", json: true,
			call:   [3]string{"<tool_call:opensource>", "<tool_sep:opensource>", "</tool_call:opensource>"},
			arg:    [3]string{"<arg_key:opensource>", "</arg_key:opensource>", "</arg_value:opensource>"},
			value:  regexp.MustCompile(`^\s*<arg_value:opensource>()`),
			middle: func(string) string { return "\n<arg_value:opensource>" }}},
	// A list of calls as Python writes them, which is all of the response.
	{Name: "pythonic", Also: []string{"llama4_pythonic", "llama4", "toolace"}, Families: "Llama 4, ToolACE, Gemma 3",
		Marks: []string{"<|python_start|>"}, Tokens: []string{"<|python_end|>"}, Bare: "[",
		grammar: functions{open: "<|python_start|>", close: "<|python_end|>", list: true, bare: true}},
	// A list that is all of the response.
	{Name: "phi4_mini_json", Also: []string{"phi4_mini", "xlam"}, Families: "Phi-4-mini, xLAM",
		Marks: []string{"functools"}, Bare: "[",
		grammar: objects{open: "functools", list: true, bare: true, name: "name",
			arguments: []string{"arguments", "parameters"}}},
}

// Marks of DeepSeek's calls.
const (
	deepSeekOpen  = "<｜tool▁calls▁begin｜>"
	deepSeekClose = "<｜tool▁calls▁end｜>"
	deepSeekBegin = "<｜tool▁call▁begin｜>"
	deepSeekEnd   = "<｜tool▁call▁end｜>"
)

// Elements of Qwen3-Coder's calls and of their arguments.
var (
	qwenCall     = [3]string{"<function=", ">", "</function>"}
	qwenArgument = [3]string{"<parameter=", ">", "</parameter>"}
)

// dsmlCalls have another element around them in V4.
type dsmlCalls struct{ elements }

func (d dsmlCalls) read(text string, tools []Tool, ended bool) reading {
	if strings.HasPrefix(text, "<｜DSML｜tool_calls>") {
		d.open, d.close = "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"
	}
	return d.elements.read(text, tools, ended)
}

// mistralCalls are read in both forms, and written in one.
type mistralCalls struct {
	text func(name, arguments string) string
}

var (
	mistralObjects = objects{open: "[TOOL_CALLS]", name: "name", arguments: []string{"arguments"}}
	mistralHeads   = headed{begin: "[TOOL_CALLS]", head: regexp.MustCompile(
		`^\[TOOL_CALLS\]\s*(?P<name>[\pL\pN_.:/-]+)(?:\[CALL_ID\](?P<id>[^\[\s]*))?\s*(?:\[ARGS\])?`)}
)

func (m mistralCalls) read(text string, tools []Tool, ended bool) reading {
	if got := mistralObjects.read(text, tools, ended); got.n > 0 || got.open {
		return got
	}
	return mistralHeads.read(text, tools, ended)
}

func (m mistralCalls) write(name, arguments string) string { return m.text(name, arguments) }
