package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tooltest"
	"github.com/ropewalk/ropewalk/tool"
)

// every has an argument of each type.
type every struct {
	Text  string   `json:"text" doc:"a text"`
	Flag  bool     `json:"flag" doc:"a truth value"`
	Whole int      `json:"whole,omitempty" doc:"a whole number"`
	Part  float64  `json:"part,omitempty" doc:"a number"`
	List  []string `json:"list,omitempty" doc:"a list"`
}

// printer prints its arguments. Its calls break on the text "break".
type printer struct {
	name   string
	broken bool
}

func (p printer) Spec() tool.Spec {
	return tool.Spec{Name: p.name, Doc: "prints its arguments", Schema: tool.SchemaOf[every](), Repeat: tool.Pure}
}

var errPrinter = errors.New("out of paper")

func (p printer) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.Each(ctx, calls, func(_ context.Context, _ tool.Call, given every) (tool.Result, error) {
		switch {
		case p.broken || given.Text == "break":
			return tool.Result{}, errPrinter
		case given.Text == "panic":
			panic("no ink")
		}
		return tool.Result{Status: tool.OK, Stdout: fmt.Sprintf("%s %+v", p.name, given)}, nil
	})
}

// Arguments of every type are rejected exactly where their schema rejects them.
func TestDecodeAgreesWithTheSchema(t *testing.T) {
	for _, breaking := range []string{"break", "panic"} {
		tooltest.Run(t, tooltest.Subject{Tool: printer{name: "printer"}, Broken: printer{name: "printer", broken: true},
			Good: []string{`{"text": "a", "flag": true}`, `{"text": "", "flag": false, "whole": 2.0, "part": -1e-3, ` +
				`"list": ["a"]}`, `{"text": "b", "flag": true, "whole": -9007199254740991, "list": []}`},
			Breaking: `{"text": "` + breaking + `", "flag": true}`})
	}
}

func TestAFieldThatIsNoArgumentPanics(t *testing.T) {
	type deep struct {
		Deep map[string]string `json:"deep" doc:"x"`
	}
	require.PanicsWithValue(t, "tool: field Deep of tool_test.deep is no argument: it needs the tags json and doc and "+
		"a type that arguments have", func() { tool.SchemaOf[deep]() })
}

func call(of string, i int, text string) tool.Call {
	arguments, err := json.Marshal(every{Text: text})
	if err != nil {
		panic(err)
	}
	return tool.Call{Key: tool.Key{Call: i}, Tool: of, Name: of, Arguments: arguments}
}

// A turn's calls of several tools get their outcomes in the order of the calls.
func TestAToolboxGroupsCalls(t *testing.T) {
	box := tool.Toolbox{printer{name: "one"}, printer{name: "two"}}
	var calls []tool.Call
	for i := range 1200 {
		calls = append(calls, call([]string{"one", "two"}[i%7%2], i, fmt.Sprint(i)))
	}
	calls[5], calls[6].Arguments = call("two", 5, "break"), []byte(`{"text": "a"}`)
	most := 0
	progress := make(chan int, len(calls))
	outcomes, err := box.RunEach(t.Context(), calls, func(done int) { progress <- done })
	require.NoError(t, err)
	close(progress)
	for n := range progress {
		most = max(most, n)
	}
	require.Equal(t, len(calls), most)
	for i, o := range outcomes {
		switch i {
		case 5:
			require.ErrorIs(t, o.Broken, errPrinter)
		case 6:
			require.Equal(t, tool.BadArguments, o.Status)
			require.Equal(t, "flag is missing or not true or false", o.Stderr)
		default:
			require.NoError(t, o.Broken)
			require.Equal(t, fmt.Sprintf("%s {Text:%d Flag:false Whole:0 Part:0 List:[]}", calls[i].Tool, i), o.Stdout)
		}
	}
	none, err := box.RunEach(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestAToolboxWithABrokenTool(t *testing.T) {
	calls := []tool.Call{call("one", 0, "a"), call("two", 1, "a"), call("two", 2, "b")}
	_, err := tool.Toolbox{printer{name: "one"}, printer{name: "two", broken: true}}.RunEach(t.Context(), calls, nil)
	require.EqualError(t, err, "none of 2 calls got a verdict: out of paper")
	_, err = tool.Toolbox{printer{name: "one"}}.RunEach(t.Context(), calls, nil)
	require.EqualError(t, err, `run tool calls: there is no tool "two"`)
	for want, broken := range map[string]careless{
		"tool careless broke: it gave 0 results of 1 calls": func() []tool.Result { return nil },
		`the tool gave the status "queue_timeout", which is no verdict`: func() []tool.Result {
			return []tool.Result{{Status: "queue_timeout"}}
		},
		"panicked: lost": func() []tool.Result { panic("lost") },
	} {
		outcomes, err := tool.Toolbox{broken}.RunEach(t.Context(), []tool.Call{{Tool: "careless"}}, nil)
		if err == nil {
			err = outcomes[0].Broken
		}
		require.EqualError(t, err, want)
	}
}

// careless is a tool that breaks the contract.
type careless func() []tool.Result

func (careless) Spec() tool.Spec { return tool.Spec{Name: "careless"} }

func (c careless) Run(context.Context, []tool.Call) ([]tool.Result, error) { return c(), nil }

// Keys differ in every part, also where names contain the marks that separate parts.
func TestKeysAreUnique(t *testing.T) {
	base := tool.Key{Scope: tool.Scope{Run: "r", Pass: "p"}, Label: "sample"}
	seen := map[string]tool.Key{}
	for _, change := range []func(*tool.Key){
		func(*tool.Key) {}, func(k *tool.Key) { k.Run = "r/sample" }, func(k *tool.Key) { k.Label = "evaluate" },
		func(k *tool.Key) { k.Run, k.Label = "r/sample", "" }, func(k *tool.Key) { k.Pass = "" },
		func(k *tool.Key) { k.Generation = 1 }, func(k *tool.Key) { k.Step = 1 }, func(k *tool.Key) { k.Group = 1 },
		func(k *tool.Key) { k.Sample = 1 }, func(k *tool.Key) { k.Turn = 1 }, func(k *tool.Key) { k.Call = 1 },
	} {
		k := base
		change(&k)
		require.NotContains(t, seen, k.String(), "%+v", k)
		seen[k.String()] = k
	}
	require.Equal(t, "r/sample/pass=p/step=0/gen=0/group=0/sample=0/turn=0/call=0", base.String())
}
