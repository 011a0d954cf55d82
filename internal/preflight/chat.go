package preflight

import (
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool/mcp"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Chat binds protocol chat to the model that a recipe starts from. It refuses a template that cannot hold the recipe's
// conversations. declared are the tools that the policy can call.
func Chat(r *recipes.Recipe, m *pretrained.Model, declared []tools.Declaration) (protocol.Chat, error) {
	chat, err := bind(protocol.Chat{System: r.Rollout.System, Format: r.Rollout.ToolFormat, Whole: r.Rewritten()}, m)
	if err == nil && r.Environment.Declaration().Functions != nil {
		return chat, chat.CheckCalls([]protocol.Tool{protocol.Python})
	}
	if err != nil || len(declared) == 0 {
		return chat, err
	}
	prompted := rollout.Settings{Tools: tools.Specs(declared)}.Prompted()
	if err := chat.CheckCalls(prompted); err != nil || r.Rollout.MaxTurns < 2 {
		return chat, err
	}
	return chat, chat.CheckTools(prompted)
}

func bind(chat protocol.Chat, m *pretrained.Model) (protocol.Chat, error) {
	return chat.With(protocol.ChatModel{Template: m.Template, ToolTemplate: m.ToolTemplate, Special: m.Special,
		Added: m.Tokens.Added(), Ends: m.Ends})
}

// Rewrites reports whether a model's chat template writes earlier turns differently once the results of calls follow.
// It is false for a template that protocol chat refuses.
func Rewrites(m *pretrained.Model) bool {
	chat, err := bind(protocol.Chat{}, m)
	return err == nil && chat.Rewrites(nil)
}

// ChatNotes says what a run reads and writes with the chat template of a model: the form of calls, the tokens that end
// a response, and what the template does to earlier turns.
func ChatNotes(r *recipes.Recipe, m *pretrained.Model) ([]string, error) {
	here := r.Rollout // without the tools of servers that are asked when the run is prepared
	here.MCP = slices.DeleteFunc(slices.Clone(here.MCP), func(s mcp.Server) bool { return len(s.Pinned) == 0 })
	declared, err := here.Declared()
	if err != nil {
		return nil, badinput.Of(err)
	}
	with := *r
	with.Policy.Pinned = &recipes.Pinned{Rewrites: Rewrites(m)}
	if path, text := with.RewritingFault(); text != "" {
		return nil, badinput.Errorf("%s: %s", path, text)
	}
	chat, err := Chat(&with, m, declared)
	if err != nil {
		return nil, badinput.Errorf("policy.checkpoint: the model at %s does not fit rollout.protocol: %v",
			r.Policy.Checkpoint, err)
	}
	spec := chat.Spec()
	ends := strconv.Quote(spec.EndOfTurn)
	for _, stop := range spec.Stops {
		ends += " or " + strconv.Quote(stop)
	}
	notes := []string{"a response ends with " + ends}
	if len(declared)+len(r.Rollout.MCP) > 0 || r.Environment.Declaration().Functions != nil {
		notes[0] = "calls have the form " + chat.Calls() + ", and " + notes[0]
	}
	for _, warning := range chat.Warnings(rollout.Settings{Tools: tools.Specs(declared)}.Prompted()) {
		notes = append(notes, "the chat template "+warning)
	}
	return notes, nil
}
