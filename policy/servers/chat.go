package servers

import (
	"context"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// chat speaks OpenAI's chat completions, as hosted models do. It is text whose prefixes are in ChatML, as the prompts
// of our own models are, and become messages.
type chat struct {
	text
	takes chatFields
}

// chatFields are what a server takes of a request.
type chatFields struct {
	budget      string // the field that bounds the response
	seed        bool
	temperature float64 // that it is asked with to find out
}

// chatVariants are tried in this order. Models that reason take another name for the budget and no temperature but 1.
var chatVariants = []chatFields{
	{"max_tokens", true, 0.5}, {"max_tokens", false, 0.5}, {"max_completion_tokens", true, 0.5},
	{"max_completion_tokens", true, 1}, {"max_completion_tokens", false, 1}, {"max_tokens", false, 1},
}

// leastChat is a budget that no server refuses.
const leastChat = 16

// facts asks for a short response, with fewer fields where the server rejects the request.
func (d *chat) facts(ctx context.Context) (f Facts, err error) {
	for _, d.takes = range chatVariants {
		_, err = d.ask(ctx, []openai.Message{{Role: "user", Content: "Say hello."}},
			row{maxTokens: leastChat, temperature: d.takes.temperature, stream: 1})
		if kindOf(err) != openai.Rejected {
			break
		}
	}
	free := d.takes.temperature != 1
	return Facts{Model: d.Model, LogProbs: LogProbsNone,
		Capabilities: policy.Capabilities{Temperature: free, TopP: free}}, err
}

func (d *chat) row(ctx context.Context, r row) (response, error) {
	messages := messagesOf(d.tokens.Decode(r.prefix))
	c, err := d.ask(ctx, messages, r)
	if err != nil {
		return response{}, err
	}
	if n := len(messages); n > 0 && messages[n-1].Role == "assistant" { // a model may repeat how it begins
		c.Text = strings.TrimPrefix(c.Text, messages[n-1].Content)
	}
	return d.encode(r, c), nil
}

// ask returns the reply's message as the text of a completion. No texts are named at which it stops: a server leaves
// out the one that it has found, and the protocol needs to know which.
func (d *chat) ask(ctx context.Context, messages []openai.Message, r row) (completionChoice, error) {
	body := map[string]any{"model": d.Model, "messages": messages, "temperature": r.temperature,
		d.takes.budget: r.maxTokens}
	if d.takes.seed {
		body["seed"] = seed32(r.stream) >> 1
	}
	if r.temperature > 0 && (policy.Truncation{TopP: r.cut.TopP}).Active() {
		body["top_p"] = r.cut.TopP
	}
	var reply struct {
		Choices []struct {
			Finish  string `json:"finish_reason"`
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := d.generation(ctx, "chat/completions", body, r.maxTokens, &reply); err != nil {
		return completionChoice{}, err
	}
	if len(reply.Choices) != 1 {
		return completionChoice{}, d.fault("its reply has %d choices, want 1", len(reply.Choices))
	}
	return completionChoice{Text: reply.Choices[0].Message.Content, Finish: reply.Choices[0].Finish}, nil
}

// turnOpen begins a message in ChatML.
const turnOpen = "<|im_start|>"

// messagesOf divides a prompt into messages. Results of tools become messages of the user, since they answer no call
// that the server knows of. What a response begins with, or continues after, is the last message of the assistant.
func messagesOf(prompt string) (out []openai.Message) {
	for i, part := range strings.Split(prompt, turnOpen) {
		part = strings.TrimSuffix(strings.TrimRight(part, "\n"), tokenizer.EndOfTurn)
		role, content, _ := strings.Cut(part, "\n")
		known := slices.Contains([]string{"system", "user", "assistant", "tool"}, role)
		last := len(out) - 1
		switch {
		case i == 0 && strings.TrimSpace(part) == "":
		case !known && last >= 0: // a response has said it
			out[last].Content += turnOpen + part
		case !known:
			out = append(out, openai.Message{Role: "user", Content: part})
		case role == "tool" && last >= 0 && out[last].Role == "user":
			out[last].Content += "\n" + toolResult(content)
		case role == "tool":
			out = append(out, openai.Message{Role: "user", Content: toolResult(content)})
		case role != "assistant" || strings.TrimSpace(content) != "":
			out = append(out, openai.Message{Role: role, Content: content})
		}
	}
	return out
}

func toolResult(content string) string { return "<tool_response>\n" + content + "\n</tool_response>" }
