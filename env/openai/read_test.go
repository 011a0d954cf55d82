package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked is a conversation with a call and its answer.
const asked = `{"role":"user","content":"2+2?"},` +
	`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function",` +
	`"function":{"name":"add","arguments":"{\"x\": 2}"}}]},` +
	`{"role":"tool","tool_call_id":"a","content":"4"},{"role":"assistant","content":"4"}`

func item(messages, rest string) string {
	return fmt.Sprintf(`{"messages":[%s],%s}`, messages, rest)
}

func TestReadLayouts(t *testing.T) {
	line := item(asked, `"reward":1`)
	for name, text := range map[string]string{
		"JSON lines":             line + "\n" + line + "\n",
		"blank lines between":    "\n" + line + "\r\n \n" + line,
		"a list":                 "[" + line + "," + line + "]",
		"a list over lines":      " [\n" + line + ",\n" + line + "\n]\n",
		"tau-bench's":            strings.ReplaceAll("["+line+","+line+"]", `"messages"`, `"traj"`),
		"messages win over traj": strings.ReplaceAll("["+line+","+line+"]", `"reward"`, `"traj":[],"reward"`),
		"null is as good as none": strings.ReplaceAll("["+line+","+line+"]", `"reward"`,
			`"task_id":null,"trial":null,"reward"`),
	} {
		t.Run(name, func(t *testing.T) {
			tasks, err := Read([]byte(text))
			require.NoError(t, err)
			require.Len(t, tasks, 1, "the same prompt is the same task")
			require.Len(t, tasks[0].Trials, 2)
			for _, trial := range tasks[0].Trials {
				require.Len(t, trial.Messages, 4)
				require.JSONEq(t, "["+asked+"]", string(trial.List))
				require.Equal(t, []Call{{ID: "a", Name: "add", Arguments: `{"x": 2}`, Answer: 2}},
					trial.Messages[1].Calls)
				require.True(t, trial.Success())
			}
		})
	}
}

func TestReadGroupsByTask(t *testing.T) {
	other := strings.ReplaceAll(asked, "2+2?", "3+3?")
	file := strings.Join([]string{
		item(asked, `"reward":0,"task_id":7,"trial":1`),
		item(other, `"reward":1,"task_id":"x"`),
		item(other, `"reward":0.5,"task_id":"7","trial":0`),
		item(other, `"reward":1`),
		item(other, `"reward":0,"tools":[{"type":"function"}],"info":{"task":{"instruction":"Add."}}`),
		item(asked, `"reward":1`),
	}, "\n")
	tasks, err := Read([]byte(file))
	require.NoError(t, err)
	var got []string
	for _, task := range tasks {
		line := fmt.Sprint(len(task.ID) == 64, " ", task.Title)
		for _, trial := range task.Trials {
			line += fmt.Sprintf(" %d:%g", trial.Line, trial.Reward)
		}
		got = append(got, line)
	}
	require.Equal(t, []string{
		"false  3:0.5 1:0", // task 7, by trial
		"false  2:1",       // task x
		"true  4:1 5:0",    // the same prompt without a task's name; the first item's title is kept
		"true  6:1",
	}, got)
	require.JSONEq(t, `{"reward":0,"tools":[{"type":"function"}],"info":{"task":{"instruction":"Add."}}}`,
		string(tasks[2].Trials[1].Rest))
}

func TestReadRefuses(t *testing.T) {
	good := item(asked, `"reward":1`)
	messages := func(m string) string { return good + "\n" + item(m, `"reward":1`) }
	calls := func(c string) string {
		return messages(`{"role":"user","content":"q"},{"role":"assistant","tool_calls":` + c + `}`)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", " \n", "the file holds none"},
		{"an empty list", "[]", "the file holds none"},
		{"no JSON", "version: 1", "line 1: invalid character 'v' looking for beginning of value"},
		{"a broken line", good + "\n\n{\"messages\":\n", "line 3: unexpected end of JSON input"},
		{"a broken list", "[\n" + good + ",\n{\"messages\" []}\n]", "line 3: invalid character '[' after object key"},
		{"a cut list", "[\n" + good + ",\n", "line 2: unexpected end of JSON input"},
		{"text after a list", "[" + good + "]\nx", "line 2: invalid character 'x' after top-level value"},
		{"not UTF-8", good + "\n\"\xff\"", "line 2: is not UTF-8"},
		{"not an object", good + "\n[1]", "line 2: item 1: must be an object, got [1]"},
		{"no messages", `{"reward":1}`, "line 1: item 0: messages: is missing"},
		{"messages that are text", `{"messages":"q","reward":1}`, `messages: must be a list, got "q"`},
		{"no answer", messages(`{"role":"user","content":"q"}`),
			"line 2: item 1: messages: holds no message of the assistant"},
		{"no reward", `{"messages":[` + asked + `]}`, "item 0: reward: is missing; each conversation needs the number"},
		{"a reward in words", item(asked, `"reward":"good"`), `reward: must be a number, got "good"`},
		{"a reward beyond numbers", item(asked, `"reward":1e999`), "reward: must be a number, got 1e999"},
		{"a task that is a list", item(asked, `"reward":1,"task_id":[1]`),
			"task_id: must be text or a whole number, got [1]"},
		{"half a task", item(asked, `"reward":1,"task_id":1.5`), "task_id: must be text or a whole number, got 1.5"},
		{"a nameless task", item(asked, `"reward":1,"task_id":""`), "task_id: must not be empty"},
		{"a trial below 0", item(asked, `"reward":1,"trial":-1`), "trial: must be a whole number ≥ 0, got -1"},
		{"a trial twice", item(asked, `"reward":1,"trial":3`) + "\n" + item(asked, `"reward":1,"trial":3`),
			"line 2: item 1: trial: task "},
		{"a message that is text", messages(`"hi"`), `item 1: messages[0]: must be an object, got "hi"`},
		{"no role", messages(`{"content":"q"}`), "messages[0].role: is missing"},
		{"an unknown role", messages(`{"role":"robot"}`),
			`messages[0].role: must be one of system, developer, user, assistant, tool, function, got "robot"`},
		{"a number for content", messages(`{"role":"user","content":3}`), "messages[0].content: must be text, got 3"},
		{"a part without a type", messages(`{"role":"user","content":[{"text":"q"}]}`),
			"messages[0].content[0].type: is missing"},
		{"a part without its text", messages(`{"role":"user","content":[{"type":"text"}]}`),
			"messages[0].content[0].text: is missing"},
		{"calls that are no list", calls(`{}`), "messages[1].tool_calls: must be a list, got {}"},
		{"a call without an id", calls(`[{"function":{"name":"f","arguments":"{}"}}]`),
			"messages[1].tool_calls[0].id: is missing"},
		{"a call of another type", calls(`[{"id":"a","type":"custom"}]`),
			`messages[1].tool_calls[0].type: must be function, got "custom"`},
		{"a call without a function", calls(`[{"id":"a"}]`), "messages[1].tool_calls[0].function: is missing"},
		{"a function without a name", calls(`[{"id":"a","function":{"arguments":"{}"}}]`),
			"messages[1].tool_calls[0].function.name: is missing"},
		{"arguments that are a list", calls(`[{"id":"a","function":{"name":"f","arguments":[]}}]`),
			"messages[1].tool_calls[0].function.arguments: must be text, got []"},
		{"an answer to nothing", messages(asked + `,{"role":"tool","tool_call_id":"b","content":"4"}`),
			`messages[4].tool_call_id: "b" answers no earlier call that is still open`},
		{"a second answer", messages(asked + `,{"role":"tool","tool_call_id":"a","content":"4"}`),
			`messages[4].tool_call_id: "a" answers no earlier call`},
		{"tau-bench's path", strings.Replace(messages(`"hi"`), `{"messages":["hi"`, `{"traj":["hi"`, 1),
			"item 1: traj[0]: must be an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read([]byte(c.text))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "read conversations: ")
		})
	}
}

func TestCallsAndAnswers(t *testing.T) {
	call := func(id, name string) string {
		return fmt.Sprintf(`{"id":%q,"function":{"name":%q,"arguments":"{}"}}`, id, name)
	}
	list := `[{"role":"user","content":[{"type":"text","text":"see "},{"type":"image_url","image_url":{"url":"x"}}]},
	{"role":"assistant","content":"","tool_calls":[` + call("1", "f") + `,` + call("2", "g") + `],"function_call":null},
	{"role":"tool","tool_call_id":"2","content":"second"},{"role":"tool","tool_call_id":"1","content":"first"},
	{"role":"assistant","tool_calls":[` + call("1", "h") + `]},{"role":"tool","tool_call_id":"1","content":"ids may repeat"},
	{"role":"assistant","function_call":{"name":"old","arguments":"not JSON"}},{"role":"function","name":"old","content":"legacy"},
	{"role":"assistant","content":null,"refusal":"No.","tool_calls":[` + call("9", "never") + `]}]`
	messages, err := messagesOf(json.RawMessage(list))
	require.NoError(t, err)
	answers := map[string]int{}
	for _, m := range messages {
		for _, c := range m.Calls {
			answers[c.Name] = c.Answer
		}
	}
	require.Equal(t, map[string]int{"f": 3, "g": 2, "h": 5, "old": 7, "never": -1}, answers)
	require.Equal(t, "see [image_url]", messages[0].Text)
	require.Equal(t, "No.", messages[8].Text)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(item(asked, `"reward":1`)))
	f.Add([]byte(`[{"traj":[{"role":"assistant","content":[]}],"reward":0,"task_id":1}]`))
	f.Add([]byte("[{\"messages\":null}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tasks, err := Read(data)
		if err != nil {
			return
		}
		rows := Rows(1, tasks, func(s string) []int32 { return make([]int32, len(s)) })
		for _, r := range rows.Trajectories {
			require.NoError(t, r.Validate())
			calls, err := CallRows(r)
			require.NoError(t, err)
			require.Len(t, calls, int(r.ToolCalls))
		}
		for _, r := range rows.Turns {
			require.NoError(t, r.Validate())
		}
	})
}
