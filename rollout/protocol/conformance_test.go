package protocol_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/protocoltest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Every protocol of the list fulfils the contract and has a unique name.
func TestProtocolsConform(t *testing.T) {
	names := protocol.Names()
	for i, p := range protocol.All {
		t.Run(p.Spec().Name, func(t *testing.T) {
			require.Equal(t, i, slices.Index(names, p.Spec().Name), "the name is not unique")
			named, err := protocol.Named(p.Spec().Name)
			require.NoError(t, err)
			require.Equal(t, p, named)
			protocoltest.Run(t, p)
		})
	}
	for _, p := range protocol.All {
		require.NotEmpty(t, p.Spec().Marks, "%s: text from outside could be taken for its tags", p.Spec().Name)
	}
	_, err := protocol.Named("no such protocol")
	require.ErrorContains(t, err, strings.Join(names, ", "))
}

// A call that is cut off is counted as open until it is closed, or until the protocol lists it among the calls.
func TestCutOffCallsAreCounted(t *testing.T) {
	for _, p := range protocol.All {
		response, ok := p.Write(env.Move{Thought: "I add.", Code: "print(1+1)"})
		if !p.Spec().Tools || !ok {
			continue
		}
		t.Run(p.Spec().Name, func(t *testing.T) {
			whole := p.Parse(response, nil)
			require.Len(t, whole.Calls, 1)
			require.Zero(t, whole.OpenCalls)
			opened := 0
			for end := range response {
				got := p.Parse(response[:end], nil)
				require.LessOrEqual(t, got.OpenCalls+len(got.Calls), 1, "%q", response[:end])
				opened += got.OpenCalls
			}
			require.GreaterOrEqual(t, opened, len("print(1+1)"), "each prefix that ends in the code has an open call")
		})
	}
	two := protocol.CallResponse("1")
	got := protocol.RStar2{}.Parse(two+strings.TrimSuffix(two, "</tool_call>"+protocol.EndOfTurn), nil)
	require.Len(t, got.Calls, 1)
	require.Equal(t, 1, got.OpenCalls)
}

// actionLine is the example of CONTRIBUTING.md. A response is one line that begins with "action:".
type actionLine struct{ protocol.ThinkAction } // provides the prompts

func (actionLine) Spec() protocol.Spec {
	return protocol.Spec{Name: "action_line", Doc: "a thought and a line of action", Form: "it ends with one such line",
		EndOfTurn: protocol.EndOfTurn, Tags: []string{"action"}, Marks: []string{"<|"}, Acts: true, Summaries: true,
		Whole: true}
}

func (actionLine) Parse(response string, _ []protocol.Tool) protocol.Parsed {
	text, ended := strings.CutSuffix(response, protocol.EndOfTurn)
	thought, action, found := strings.Cut(text, "\naction: ")
	return protocol.Parsed{Reasoning: thought, Action: action, WellFormed: ended && found &&
		!strings.Contains(action, "\n")}
}

func (actionLine) Write(m env.Move) (string, bool) {
	return m.Thought + "\naction: " + m.Action + protocol.EndOfTurn, m.Action != ""
}

func TestTheExampleOfContributing(t *testing.T) { protocoltest.Run(t, actionLine{}) }

// The text that a policy reads and writes in ARLArena's protocol, byte by byte.
func TestThinkActionPrompts(t *testing.T) {
	p := protocol.ThinkAction{}
	require.Equal(t,
		"<|im_start|>user\nPush.\n\nYour current observation is:\n#@$.#\nYour admissible actions of the current "+
			"situation are: ['up', 'right'].\n\n"+
			"Now it's your turn to take an action.\nYou should first reason step-by-step about the current "+
			"situation. This reasoning process MUST be enclosed "+
			"within <think> </think> tags.\nOnce you've finished your reasoning, you should choose an admissible "+
			"action for current step and present it within "+
			"<action> </action> tags.<|im_end|>\n<|im_start|>assistant\n",
		p.Context(protocol.View{Instruction: "Push.", Observation: "#@$.#", Admissible: []string{"up", "right"}}))
	require.Contains(t,
		p.Context(protocol.View{Instruction: "Push.", Turn: 1, Observation: "#_@√#",
			Past: []protocol.Exchange{{"#@$.#", "right"}}}),
		"Push.\n\nPrior to this step, you have already taken 1 step(s). Below are the most recent 1 observations "+
			"and the corresponding actions you took:\n"+
			"[Observation 1: '#@$.#', Action 1: 'right']\n\nYou are now at step 2 and your current observation "+
			"is:\n#_@√#\n\nNow it's your turn")
}

// With a summary, a prompt holds it after the task, and the turns since.
func TestThinkActionPromptsWithASummary(t *testing.T) {
	p := protocol.ThinkAction{}
	v := protocol.View{Instruction: "Push.", Turn: 3, Observation: "#_@√#", Summary: "I went <|left|>.",
		Past: []protocol.Exchange{{"#@$.#", "right"}}}
	told := "<|im_start|>user\nPush.\n\nYour summary of the steps before:\nI went < |left|>.\n\nPrior to this step, " +
		"you have already taken 3 step(s). Below are the most recent 1 observations and the corresponding actions " +
		"you took:\n[Observation 3: '#@$.#', Action 3: 'right']\n\nYou are now at step 4 and your current " +
		"observation is:\n#_@√#\n"
	require.True(t, strings.HasPrefix(p.Context(v), told+"\nNow it's your turn"), p.Context(v))
	require.Equal(t, told+"Summarize what you did and learned. Later prompts hold your summary in place of these "+
		"steps.<|im_end|>\n<|im_start|>assistant\n", protocol.AskSummary(p, v))
}

func TestThinkActionParses(t *testing.T) {
	for text, want := range map[string]protocol.Parsed{
		"<think>a</think> <action> Up </action><|im_end|>":     {Reasoning: "a", Action: "up", WellFormed: true},
		"<think></think><action>up</action>":                   {Action: "up"}, // cut off
		"<action>up</action><|im_end|>":                        {Action: "up"},
		"<think>a</think><action>up</action> done<|im_end|>":   {Reasoning: "a", Action: "up"},
		"<think>a</think><action>向上</action><|im_end|>":        {Reasoning: "a", Action: "向上"},
		"I would rather go up and then down to it<|im_end|>":   {Action: "ther go up and then down to it"},
		"<think>a</think><action>x</action><action>y</action>": {Reasoning: "a", Action: "x"},
	} {
		require.Equal(t, want, protocol.ThinkAction{}.Parse(text, nil), "%q", text)
	}
}

// The prompt for published models says which tags to write, and lists the tools with their signatures under the names
// that the parser knows.
func TestRStar2Prompt(t *testing.T) {
	p := protocol.RStar2Prompt{}
	got := p.Context(protocol.View{Task: "What is 6 <|times|> 7?"})
	require.True(t, strings.HasPrefix(got, "<|im_start|>system\nSolve the problem step by step."), got)
	require.Contains(t, got, "<tools>\n{\"type\": \"function\", \"function\": {\"name\": \""+protocol.ToolName+"\", ")
	require.True(t, strings.HasSuffix(got, "<|im_end|>\n<|im_start|>user\nWhat is 6 < |times|> 7?<|im_end|>\n"+
		"<|im_start|>assistant\n<reason>"), got)
	later := protocol.View{Turn: 1, Rounds: []protocol.Round{{Bodies: []string{"42"}}}}
	require.Equal(t, protocol.RStar2{}.Context(later), p.Context(later))
	require.NotEqual(t, got, p.Context(protocol.View{Task: "What is 6 <|times|> 7?",
		Tools: []protocol.Tool{protocol.Python, {Name: "lookup"}}}))
}

func FuzzRStar2(f *testing.F) { protocoltest.Fuzz(f, protocol.RStar2{}) }

func FuzzThinkAction(f *testing.F) { protocoltest.Fuzz(f, protocol.ThinkAction{}) }
