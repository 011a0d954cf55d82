package protocol_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

var update = flag.Bool("update", false, "rewrite docs/protocols.md")

const pageHead = `# Protocols

<!-- Made from the protocols' own code by: go test ./rollout/protocol -update -->

After reading this page, you know what a policy reads and writes under each protocol that ` + "`rollout.protocol`" + ` names
([fields](recipes.md#rollout)).

A protocol is the prompt format of an episode: it renders messages, tools and observations into the text that the policy
reads, and parses the response into reasoning, calls, answer or action. Calls and answers inside the reasoning are
drafts, which neither run nor count. The texts below are exact, except for the brackets ⟦ and ⟧: they enclose what the
policy samples. The loss covers these parts and no others. Text from a task, a tool or an environment never contains one
of the protocol's tags or special tokens, because the protocol breaks such strings up before the policy reads them.

[Contributing](../CONTRIBUTING.md#add-a-protocol) says how to add a protocol.
`

const formsHead = `
## Forms of calls

Models write calls in their own forms. The protocol chat renders known calls with the model's chat template, and takes
the form that reads them back; ` + "`rollout.tool_format`" + ` names another one, and so does
` + "`ropewalk serve --tool-format`" + `. A template whose calls no form reads is refused. A template that writes no calls at
all has the form whose mark its prompt explains, or the first one.

In raw text, the tool's schema tells the type of an argument: a text that does not fit it stays a text. A call that the
limit of tokens cuts is open, which is neither run nor the answer. A call that has an argument twice, or that cannot be
read, is refused, and the policy reads why. A form also has the names that parsers of other programs have for it. ⏎
means a line end.

| names | models | a call of f with k = v |
| --- | --- | --- |
`

const refusedTemplates = `
## Chat templates that are refused

A template is tried with the recipe's tools before anything is trained (` + "`--dry-run`" + ` shows what is found out). Without
tools the last reason does not count.

| a template that | why |
| --- | --- |
| raises an error, or takes too many steps, bytes or levels | no prompt can be written; the error names the template's line |
| does not write what a message says | it is for ranking or embedding, and not for chats |
| ends a turn of the assistant with no token of the tokenizer | nothing says where a response ends (Alpaca, ChatGLM, Falcon, RWKV); if a model's end is split into several tokens, its tokenizer is another one than the template's |
| uses what transformers does not have or allow | it fails there too: ` + "`append`" + ` of a list (the first Kimi K2), ` + "`functions`" + ` (Firefunction 2) |
| writes calls in a form that is not known (Functionary, MiniMax M3, Muse Glimmer) | ` + "`rollout.tool_format`" + ` names the form of its model, where that is known: some templates write texts of calls without quotes, which models do not do (Llama 3.2, ToolACE: ` + "`pythonic`" + `) |

Content of messages is a text, or a list of one part where a template writes nothing else. A template that writes no
results of calls, or wants turns of user and assistant alone (Gemma 2 and 3, Phi-3, Mistral 7B v0.1), gets them as a
turn of the user, in the tags of Qwen's templates; the dry run says so. Such a template explains no tools either:
` + "`rollout.system`" + ` can, where it takes a system message.
`

const summaryHead = `
## Summaries

With ` + "`rollout.summary`" + ` the policy is asked for a summary after some turns, and samples it like any other response. Of
rstar2, hermes, tir, search, aepo and prs, the next prompt is the task, the summary and a turn of the user that asks to
continue; first what asks for the summary, then the next prompt:
`

// tags matches tags, which Markdown would take for HTML.
var tags = regexp.MustCompile(`</?\w+>`)

// The page shows one exchange in every protocol.
func TestProtocolsPage(t *testing.T) {
	page := strings.Builder{}
	page.WriteString(pageHead)
	for _, p := range protocol.All {
		spec := p.Spec()
		fmt.Fprintf(&page, "\n## %s\n\n%s. Source: %s. A response is well formed if %s.\n\n", spec.Name,
			capital(spec.Doc), spec.Source, tags.ReplaceAllString(spec.Form, "`$0`"))
		exchange := questionExchange
		switch {
		case spec.Acts:
			exchange = actionExchange
		case !spec.Tools:
			exchange = answerExchange
		}
		fmt.Fprintf(&page, "````text\n%s\n````\n", strings.TrimRight(exchange(t, p), "\n"))
	}
	page.WriteString(formsHead)
	for _, form := range toolcall.All {
		cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
		names := "`" + strings.Join(append([]string{form.Name}, form.Also...), "`, `") + "`"
		example := cell(strings.ReplaceAll(form.Write("f", `{"k": "v"}`), "\n", "⏎"))
		fmt.Fprintf(&page, "| %s | %s | `` %s `` |\n", names, form.Families, example)
	}
	page.WriteString(refusedTemplates)
	page.WriteString(summaryHead)
	for _, text := range []string{questionSummary(t, protocol.RStar2{}), actionSummary(t, protocol.ThinkAction{})} {
		fmt.Fprintf(&page, "\n````text\n%s\n````\n", strings.TrimRight(text, "\n"))
	}
	const path = "../../docs/protocols.md"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), page.String(),
		"run: go test ./rollout/protocol -update")
}

// questionExchange renders an episode of two turns: a call, and the answer after its result. The call is a search if
// the protocol has a tag for it, else a program.
func questionExchange(t *testing.T, p protocol.Protocol) string {
	exchange := struct {
		task, thought, output, answer string
		call                          env.Move
		tools                         []protocol.Tool
	}{
		task: "What is 17 × 23?", thought: "The product is known.", output: "391\n", answer: "391",
		call: env.Move{Thought: "I compute it.", Code: "print(17 * 23)"},
	}
	for _, name := range []string{"wiki_search", "search"} {
		search := env.Move{Thought: "I look it up.", Tool: name, Arguments: `{"query": "capital of Peru"}`}
		if _, ok := p.Write(search); !ok || p.Spec().Answer != protocol.AnswerInTags {
			continue
		}
		tool := lookup
		tool.Name = name
		exchange.task, exchange.thought, exchange.call = "What is the capital of Peru?", "The page names it.", search
		exchange.output, exchange.answer, exchange.tools = "Lima is the capital of Peru.", "Lima", []protocol.Tool{tool}
	}
	view := protocol.View{Task: exchange.task, Tools: exchange.tools}
	first := written(t, p, exchange.call)
	parsed := p.Parse(first, exchange.tools)
	require.True(t, parsed.WellFormed, "%q", first)
	require.Len(t, parsed.Calls, 1)
	out := p.Context(view) + sampled(first)
	body := p.Body(protocol.Limit{}, parsed.Calls[0], &protocol.Result{Output: exchange.output})
	view.Turn, view.Rounds = 1, []protocol.Round{{Response: first, Calls: parsed.Calls, Bodies: []string{body}}}
	last := written(t, p, env.Move{Thought: exchange.thought, Answer: exchange.answer})
	require.Equal(t, exchange.answer, p.Parse(last, exchange.tools).Answer)
	return out + p.Context(view) + sampled(last)
}

// answerExchange renders an episode of one turn: the answer.
func answerExchange(t *testing.T, p protocol.Protocol) string {
	task, answer := "What is 17 × 23?", env.Move{Thought: "I add 20 × 17 and 3 × 17.\n", Answer: "391"}
	if p.Spec().Answer == protocol.AnswerProgram {
		task = "def product(a, b):\n    \"\"\"Multiplies.\"\"\""
		answer = env.Move{Thought: "Python has an operator for it.\n", Answer: "def product(a, b):\n    return a * b"}
	}
	response := written(t, p, answer)
	require.Equal(t, answer.Answer, p.Parse(response, nil).Answer)
	return p.Context(protocol.View{Task: task}) + sampled(response)
}

// actionExchange renders two turns of an interactive episode. Each turn is its own prompt.
func actionExchange(t *testing.T, p protocol.Protocol) string {
	view := protocol.View{Instruction: "You push boxes onto targets.", Task: "Solve the room.",
		Observation: "######\n#@$ .#\n######", Admissible: []string{"left", "right"}}
	first := written(t, p, env.Move{Thought: "The box has to go to the right.", Action: "right"})
	require.Equal(t, "right", p.Parse(first, nil).Action)
	out := p.Context(view) + sampled(first)
	view.Turn, view.Past = 1, []protocol.Exchange{{Observation: view.Observation, Action: "right"}}
	view.Observation = "######\n# @$.#\n######"
	return out + "\n\n" + p.Context(view) + sampled(first)
}

// questionSummary renders what asks for a summary after a call, and the whole prompt after it.
func questionSummary(t *testing.T, p protocol.Protocol) string {
	call := written(t, p, env.Move{Thought: "I compute it.", Code: "print(17 * 23)"})
	task, told := p.Context(protocol.View{Task: "What is 17 × 23?"}), "It prints 391."+p.Spec().EndOfTurn
	calls := p.Parse(call, nil).Calls
	rounds := []protocol.Round{{Response: call, Calls: calls, Bodies: []string{p.Body(protocol.Limit{}, calls[0],
		&protocol.Result{Output: "391\n"})}}}
	out := protocol.AskSummary(p, protocol.View{Turn: 1, Rounds: rounds}) + sampled(told)
	return strings.TrimLeft(out, "\n") + "\n\n" + task + told +
		protocol.AfterSummary(p, protocol.View{Turn: 2, Rounds: append(rounds, protocol.Round{Response: told})})
}

// actionSummary renders what asks for a summary after an action, and the whole prompt after it.
func actionSummary(t *testing.T, p protocol.Protocol) string {
	view := protocol.View{Instruction: "You push boxes onto targets.", Turn: 1, Observation: "# @$.#",
		Admissible: []string{"left", "right"}, Past: []protocol.Exchange{{Observation: "#@$ .#", Action: "right"}}}
	told := "I pushed the box to the right." + p.Spec().EndOfTurn
	out := protocol.AskSummary(p, view) + sampled(told)
	view.Past, view.Summary = nil, strings.TrimSuffix(told, p.Spec().EndOfTurn)
	return out + "\n\n" + p.Context(view)
}

// written renders a scripted move.
func written(t *testing.T, p protocol.Protocol, m env.Move) string {
	response, ok := p.Write(m)
	require.True(t, ok, "%s: %+v", p.Spec().Name, m)
	return response
}

// sampled marks what the policy writes.
func sampled(response string) string { return "⟦" + response + "⟧" }

// capital returns a sentence with its first letter in upper case.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
