package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/sandbox"
)

func TestParseCalls(t *testing.T) {
	block := func(inside string) string { return "<tool_call>" + inside + "</tool_call>" }
	arguments := func(s string) string {
		return block(`{"name": "` + ToolName + `", "arguments": ` + s + `}`)
	}
	for name, c := range map[string]struct {
		response string
		want     []env.ToolCall
	}{
		"none":     {"</reason>text<|im_end|>", nil},
		"unclosed": {"<tool_call>{\"name\": 1", nil},
		"paper's name": {Call("print(1)", "2\n"),
			[]env.ToolCall{{Name: ToolName, Arguments: `{"code": "print(1)", "input": "2\n"}`, Code: "print(1)",
				Stdin: "2\n"}}},
		"release's name": {block(`{"name": "python_code_with_standard_io", "arguments": {"code": "1"}}`),
			[]env.ToolCall{{Name: ToolNameCode, Arguments: `{"code": "1"}`, Code: "1"}}},
		"two": {block(`[`) + " and " + arguments(`{"input": "", "code": "a\"b\\n<"}`), []env.ToolCall{
			{Arguments: "[", Error: env.CallDecodeError, Message: messageNotJSON},
			{Name: ToolName, Arguments: `{"input": "", "code": "a\"b\\n<"}`, Code: "a\"b\\n<"},
		}},
		"not an object": {block("null"),
			[]env.ToolCall{{Arguments: "null", Error: env.CallDecodeError, Message: messageNotJSON}}},
		"trailing text": {block(`{} x`),
			[]env.ToolCall{{Arguments: "{} x", Error: env.CallDecodeError, Message: messageNotJSON}}},
		"cut short": {BrokenCall("print(1)"),
			[]env.ToolCall{{Arguments: `{"name": "` + ToolName + `", "arguments": {"code": "print(1)`,
				Error: env.CallDecodeError, Message: messageNotJSON}}},
		"no name": {block(`{"arguments": {}}`),
			[]env.ToolCall{{Arguments: `{"arguments": {}}`, Error: env.CallDecodeError, Message: messageNoName}}},
		"key's case": {block(`{"Name": "x", "arguments": {}}`),
			[]env.ToolCall{{Arguments: `{"Name": "x", "arguments": {}}`, Error: env.CallDecodeError,
				Message: messageNoName}}},
		"no arguments": {block(`{"name": "` + ToolName + `"}`),
			[]env.ToolCall{{Name: ToolName, Arguments: `{"name": "` + ToolName + `"}`, Error: env.CallDecodeError,
				Message: messageNoArguments}}},
		"unknown tool": {block(`{"name": "rm", "arguments": {"code": "1"}}`),
			[]env.ToolCall{{Name: "rm", Arguments: `{"code": "1"}`, Error: env.CallUnknownTool,
				Message: `unknown tool "rm"`}}},
		"list arguments": {arguments(`[]`),
			[]env.ToolCall{{Name: ToolName, Arguments: `[]`, Error: env.CallBadArgument, Message: messageNotObject}}},
		"no code": {arguments(`{"input": ""}`),
			[]env.ToolCall{{Name: ToolName, Arguments: `{"input": ""}`, Error: env.CallBadArgument,
				Message: messageNoCode}}},
		"code a number": {arguments(`{"code": 1}`),
			[]env.ToolCall{{Name: ToolName, Arguments: `{"code": 1}`, Error: env.CallBadArgument,
				Message: messageNoCode}}},
		"input a list": {arguments(`{"code": "1", "input": []}`),
			[]env.ToolCall{{Name: ToolName, Arguments: `{"code": "1", "input": []}`, Error: env.CallBadArgument,
				Message: messageInput}}},
		"further": {arguments(`{"code": "1", "z": 1, "b": 2}`),
			[]env.ToolCall{{Name: ToolName, Arguments: `{"code": "1", "z": 1, "b": 2}`, Error: env.CallBadArgument,
				Message: `unexpected argument "b"`}}},
	} {
		if d := cmp.Diff(c.want, RStar2{}.Parse(c.response, nil).Calls); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestParseAnswers(t *testing.T) {
	for response, want := range map[string]Parsed{
		AnswerResponse("-15"): {Answer: "-15", HasAnswer: true, AnswerTags: 1},
		`<answer>\boxed{1}</answer><answer>\boxed{2}</answer>`: {Answer: "2", HasAnswer: true, AnswerTags: 2},
		`<answer>15</answer>`:                 {AnswerTags: 1},
		`<answer>\boxed{1}`:                   {},
		`\boxed{1}`:                           {},
		`<answer>\boxed{1} \boxed{2</answer>`: {AnswerTags: 1},
		`<answer>\boxed{1} or \boxed{\frac{1}{2}}</answer>`: {Answer: `\frac{1}{2}`, HasAnswer: true,
			AnswerTags: 1},
		`<answer>\boxed{1}</answer> then <answer>none</answer>`: {AnswerTags: 2},
	} {
		got := RStar2{}.Parse(response, nil)
		got.Reasoning, got.WellFormed = "", false // TestWrapped and the conformance suite are about them
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("parse %q (-want +got):\n%s", response, d)
		}
	}
}

func TestRenderEveryKindOfResponse(t *testing.T) {
	ok := env.ToolCall{Code: "1"}
	for name, c := range map[string]struct {
		call   env.ToolCall
		result *sandbox.Result
		want   string
	}{
		"decode error": {env.ToolCall{Error: env.CallDecodeError, Message: messageNotJSON}, nil,
			"Failed to decode tool call: the block is not a JSON object"},
		"unknown tool": {env.ToolCall{Error: env.CallUnknownTool, Message: `unknown tool "x"`}, nil,
			`Error when executing tool: unknown tool "x"`},
		"bad arguments": {env.ToolCall{Error: env.CallBadArgument, Message: messageNoCode}, nil,
			"Error when executing tool: code is missing or not a string"},
		"stdout": {ok, &sandbox.Result{Status: sandbox.StatusOK, Stdout: "15\n", Value: "3"},
			"Tool call success\nstdout: 15"},
		"value":   {ok, &sandbox.Result{Status: sandbox.StatusOK, Value: "15"}, "Tool call success\nstdout: 15"},
		"nothing": {ok, &sandbox.Result{Status: sandbox.StatusOK}, "Tool call success"},
		"warning": {ok, &sandbox.Result{Status: sandbox.StatusOK, Stdout: "1\n", Stderr: "careful\n"},
			"Tool call success\nstdout: 1\nstderr: careful"},
		"execution": {ok, &sandbox.Result{Status: sandbox.StatusRuntime, Stdout: "1\n",
			Stderr: "Traceback\nNameError: x\n"},
			"Tool call failure\nreason: \nstdout: 1\nstderr: Traceback\nNameError: x"},
		"syntax": {ok, &sandbox.Result{Status: sandbox.StatusSyntax, Stderr: "SyntaxError\n"},
			"Tool call failure\nreason: \nstderr: SyntaxError"},
		"cpu time": {ok, &sandbox.Result{Status: sandbox.StatusTimeoutCPU},
			"Tool call failure\nreason: worker_timeout"},
		"wall time": {ok, &sandbox.Result{Status: sandbox.StatusTimeoutWall, Stdout: "a\n"},
			"Tool call failure\nreason: worker_timeout\nstdout: a"},
		"memory": {ok, &sandbox.Result{Status: sandbox.StatusOutOfMemory}, "Tool call failure\nreason: out_of_memory"},
		"output": {ok, &sandbox.Result{Status: sandbox.StatusOutputLimit, Stdout: "yy"},
			"Tool call failure\nreason: output_limit\nstdout: yy"},
		"killed": {ok, &sandbox.Result{Status: sandbox.StatusKilled}, "Tool call failure\nreason: killed"},
		"bytes": {ok, &sandbox.Result{Status: sandbox.StatusOK, Stdout: "a\xff\n"},
			"Tool call success\nstdout: a\uFFFD"},
	} {
		if got := (Limit{}).render(c.call, Ran(c.result)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	ok := env.ToolCall{Code: "1"}
	render := func(l Limit, stdout, stderr string) string {
		return l.render(ok, &Result{Output: stdout, Errors: stderr})
	}
	const gap = "...(truncated)..."
	for _, c := range []struct {
		limit          Limit
		stdout, stderr string
		want           string
	}{
		{Limit{4, SideLeft}, "abcdefgh", "", "\nstdout: abcd" + gap},
		{Limit{4, SideRight}, "abcdefgh", "", "\nstdout: " + gap + "efgh"},
		{Limit{5, SideMiddle}, "abcdefgh", "", "\nstdout: abc" + gap + "gh"},
		{Limit{Bytes: 5}, "abcdefgh", "", "\nstdout: abc" + gap + "gh"},
		{Limit{8, SideLeft}, "abcdefgh", "", "\nstdout: abcdefgh"},
		{Limit{Side: SideLeft}, "abcdefgh", "", "\nstdout: abcdefgh"},
		{Limit{6, SideLeft}, "abcdefgh", "12345678", "\nstdout: abc" + gap + "\nstderr: 123" + gap},
		{Limit{6, SideLeft}, "a", "12345678", "\nstdout: a\nstderr: 12345" + gap},
		{Limit{6, SideRight}, "abcdefgh", "1", "\nstdout: " + gap + "defgh\nstderr: 1"},
		{Limit{1, SideLeft}, "abc", "xyz", "\nstdout: " + gap + "\nstderr: x" + gap},
		{Limit{3, SideLeft}, "aéé", "", "\nstdout: aé" + gap},
		{Limit{2, SideLeft}, "aéé", "", "\nstdout: a" + gap},
		{Limit{3, SideRight}, "ééa", "", "\nstdout: " + gap + "éa"},
		{Limit{2, SideRight}, "ééa", "", "\nstdout: " + gap + "a"},
	} {
		if got := render(c.limit, c.stdout, c.stderr); got != "Tool call success"+c.want {
			t.Errorf("limit %+v of %q and %q: %q", c.limit, c.stdout, c.stderr, got)
		}
	}
	long := env.ToolCall{Error: env.CallUnknownTool, Message: strings.Repeat("x", 50)}
	if got := (Limit{4, SideLeft}).render(long, nil); got != "Error when executing tool: xxxx"+gap {
		t.Errorf("a long message is rendered as %q", got)
	}
}

func TestTurnHoldsAllBodiesInOneUserTurn(t *testing.T) {
	got := RStar2{}.Context(View{Turn: 1, Rounds: []Round{{Bodies: []string{"A", "B"}}}})
	want :=
		"\n<|im_start|>user\n<tool_response>\nA\n</tool_response>\n<tool_response>\nB\n</tool_response><|im_end|>\n<|im_start|>assistant\n<reason>"
	if got != want {
		t.Errorf("%q", got)
	}
	got = RStar2{}.Context(View{Task: "P"})
	if got != "<|im_start|>user\nP<|im_end|>\n<|im_start|>assistant\n<reason>" {
		t.Errorf("%q", got)
	}
}

// Parse reads the call that Call writes, for any code.
func FuzzCallRoundTrip(f *testing.F) {
	f.Add("print(\"<b>&\\n\")", "1\n2")
	f.Add("x='\x00\u2028'", "")
	f.Fuzz(func(t *testing.T, code, stdin string) {
		code, stdin = strings.ToValidUTF8(code, ""), strings.ToValidUTF8(stdin, "")
		if strings.Contains(code+stdin, "</tool_call>") {
			t.Skip("the tag inside a string ends the block, by the protocol")
		}
		calls := RStar2{}.Parse("a"+Call(code, stdin)+"b", nil).Calls
		if len(calls) != 1 || calls[0].Error != "" || calls[0].Code != code || calls[0].Stdin != stdin {
			t.Fatalf("%q with input %q came back as %+v", code, stdin, calls)
		}
	})
}
