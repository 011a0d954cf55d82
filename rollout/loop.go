package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Settings bound an episode.
type Settings struct {
	MaxTurns         int     // responses, without summaries
	MaxTurnTokens    int     // of one response
	SummaryTokens    int     // of one summary (History.Summary)
	MaxTokens        int     // tokens of a turn's prefix and response; without History, of the trajectory
	History          History // earlier turns that a prompt holds after the task
	MaxToolTextBytes int     // of the tool's own text in one tool response; 0 = unbounded
	ToolTextSide     protocol.Side
	Budgets          Budgets // of tool calls and their text
	Temperature      float64 // 0 = the most likely tokens
	Truncation       policy.Truncation
	// Tools are the tools that the policy can call; nil is the tool python alone.
	Tools []tool.Spec
	// Functions returns the functions that a task brings, calls of which are the answer; nil = tasks bring none.
	Functions func(task env.Task) ([]env.Function, error)
	// Protocol is the prompt format; nil is protocol.RStar2.
	Protocol protocol.Protocol
	// Environment is the interactive environment of the episodes, or nil if the tasks are questions. PastTurns is the
	// number of latest turns that its prompts include.
	Environment env.Environment
	PastTurns   int
	// Evaluation says that the episodes are those of an evaluation, which may wait for those of training.
	Evaluation bool
	// Tree makes the samples of a prompt the leaves of a tree; nil = they are independent.
	Tree *Tree
}

// Validate names the first field with a value that no episode can run with.
func (s Settings) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"max turns", s.MaxTurns}, {"max turn tokens", s.MaxTurnTokens}, {"max tokens", s.MaxTokens}} {
		if f.value < 1 {
			return fmt.Errorf("check rollout settings: %s must be at least 1, got %d", f.name, f.value)
		}
	}
	if s.MaxToolTextBytes < 0 || s.History.Turns < 0 || s.History.Tokens < 0 || !(s.Temperature >= 0) {
		return fmt.Errorf("check rollout settings: max tool text bytes %d, history of %d turns and %d tokens and "+
			"temperature %g must not be negative",
			s.MaxToolTextBytes, s.History.Turns, s.History.Tokens, s.Temperature)
	}
	if err := s.checkSummary(); err != nil {
		return err
	}
	if err := s.Truncation.Validate(); err != nil {
		return fmt.Errorf("check rollout settings: %w", err)
	}
	if err := s.Budgets.checked(); err != nil {
		return err
	}
	if s.Tree != nil {
		if err := s.Tree.validate(); err != nil {
			return fmt.Errorf("check rollout settings: %w", err)
		}
	}
	if spec := s.protocol().Spec(); spec.Acts != (s.Environment != nil) {
		return fmt.Errorf("check rollout settings: protocol %s and the environment do not fit: one acts and the "+
			"other does not", spec.Name)
	}
	switch s.ToolTextSide {
	case "", protocol.SideLeft, protocol.SideMiddle, protocol.SideRight:
		return nil
	}
	return fmt.Errorf("check rollout settings: tool text side %q is none of left, right, middle", s.ToolTextSide)
}

func (s Settings) tools() []tool.Spec {
	if s.Tools == nil {
		return []tool.Spec{tools.Python.Spec}
	}
	return s.Tools
}

// Prompted returns what prompts say about the tools; nil is the tool python alone.
func (s Settings) Prompted() []protocol.Tool {
	if s.Tools == nil {
		return nil
	}
	out := make([]protocol.Tool, len(s.Tools))
	for i, t := range s.Tools {
		out[i] = promptedTool(t)
	}
	return out
}

func promptedTool(t tool.Spec) protocol.Tool {
	return protocol.Tool{Name: t.Name, Aliases: t.Aliases, Description: t.Doc, Parameters: t.Schema}
}

func (s Settings) protocol() protocol.Protocol {
	if s.Protocol == nil {
		return protocol.RStar2{}
	}
	return s.Protocol
}

// Loop advances episodes. It holds no state. Concurrent calls are safe if their episodes are distinct.
type Loop struct {
	settings Settings
	protocol protocol.Protocol
	prompted []protocol.Tool // what prompts say about the tools
	tok      tokenizer.Codec
	runSeed  uint64
	stops    []int32 // the tokens that end a response, the end of the turn first
	guard    *guard  // bounds the calls of the environment
	trees    *trees  // nil if samples are independent
}

// NewLoop makes the loop of one run; the tokenizer must know the end-of-turn tag.
func NewLoop(settings Settings, tok tokenizer.Codec, runSeed uint64) (*Loop, error) {
	if settings.Tree != nil {
		tree := *settings.Tree
		tree.Entropy.Vocabulary, settings.Tree = tok.VocabSize(), &tree
	}
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	p := settings.protocol()
	if p.Spec().Whole {
		settings.History = History{Own: true, Summary: settings.History.Summary}
	}
	l := &Loop{settings: settings, protocol: p, prompted: settings.Prompted(), tok: tok, runSeed: runSeed,
		guard: &guard{limit: callLimit}}
	if settings.Tree != nil {
		l.trees = &trees{Tree: settings.Tree, tools: settings.tools(), runSeed: runSeed, start: l.start}
	}
	for _, text := range append([]string{p.Spec().EndOfTurn}, p.Spec().Stops...) {
		stop, ok := tok.ID(text)
		if !ok {
			return nil, fmt.Errorf("start the agent loop: the tokenizer has no token %q", text)
		}
		l.stops = append(l.stops, stop)
	}
	return l, nil
}

// Start returns a new episode of a question. The episode awaits its first response.
func (l *Loop) Start(id Identity, task env.Task) *Episode {
	prompt, err := l.encodePrompt(task)
	e := l.start(id, task, prompt)
	if err != nil {
		e.exclude(Reason("protocol", err.Error()))
	}
	return e
}

// encodePrompt returns the prompt of a question.
func (l *Loop) encodePrompt(task env.Task) ([]int32, error) {
	tools, err := l.toolsOf(task)
	if err != nil {
		return nil, err
	}
	text, err := l.context(protocol.View{Task: task.Text, Tools: tools})
	return l.tok.Encode(text), err
}

// toolsOf returns what the prompt of a task lists: the functions that it brings, or the tools of all tasks.
func (l *Loop) toolsOf(task env.Task) ([]protocol.Tool, error) {
	if l.settings.Functions == nil {
		return l.prompted, nil
	}
	functions, err := l.settings.Functions(task)
	out := make([]protocol.Tool, len(functions))
	for i, f := range functions {
		out[i] = protocol.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters}
	}
	return out, err
}

// context renders the text before a response.
func (l *Loop) context(v protocol.View) (string, error) {
	if r, ok := l.protocol.(protocol.Renderer); ok {
		return r.Render(v)
	}
	return l.protocol.Context(v), nil
}

func (l *Loop) start(id Identity, task env.Task, prompt []int32) *Episode {
	e := &Episode{
		Identity: id, GroupID: schema.GroupID(id.Step, id.Group),
		TrajectoryID: schema.TrajectoryID(id.Step, id.Group, id.Sample),
		Task:         task, Context: prompt, History: l.settings.History, Protocol: l.protocol,
	}
	l.stopIfFull(e)
	return e
}

// stopIfFull ends an episode that has no room for another token.
func (l *Loop) stopIfFull(e *Episode) {
	if len(e.Prefix()) >= l.settings.MaxTokens {
		e.Context, e.Observation, e.Finish = nil, "", FinishLength
	}
}

// NextRequest returns the request for the next response of every episode that awaits one. rows holds their indices. If
// rows is empty, there is nothing to generate.
func (l *Loop) NextRequest(episodes []*Episode) (req policy.GenerateRequest, rows []int) {
	req = policy.GenerateRequest{
		Role: policy.RolePolicy, Temperature: l.settings.Temperature, Truncation: l.settings.Truncation,
		Stop: slices.Clone(l.stops), Evaluation: l.settings.Evaluation,
	}
	if l.trees != nil {
		req.Top, req.TopTokens = l.trees.width(), l.trees.positions()
	}
	for i, e := range episodes {
		if !e.AwaitsResponse() {
			continue
		}
		prefix := e.Prefix()
		rows = append(rows, i)
		req.Prefixes = append(req.Prefixes, prefix)
		req.Streams = append(req.Streams, e.stream(l.runSeed, len(e.Turns)))
		req.MaxTokens = append(req.MaxTokens, min(l.settings.limit(e), l.settings.MaxTokens-len(prefix)))
	}
	return req, rows
}

// Absorb appends the responses to the request over rows. version identifies the policy that wrote them.
func (l *Loop) Absorb(ctx context.Context, episodes []*Episode, rows []int, g policy.Generated, version string) error {
	if err := l.checkResponses(g, len(rows)); err != nil {
		return err
	}
	for j, i := range rows {
		t := Turn{
			Response: g.Tokens[j], LogProbs: valuesOf(g.LogProbs, j), Entropies: valuesOf(g.Entropies, j),
			Finish: g.Finish[j], PolicyVersion: version,
		}
		if l.trees != nil {
			h, err := l.trees.entropy(g.Top[j])
			if err != nil {
				return err
			}
			t.Fork = &Fork{Entropy: &h}
		}
		l.absorb(ctx, episodes[i], t)
	}
	return nil
}

// parse reads a response. A task whose functions are gone has been refused at its prompt.
func (l *Loop) parse(task env.Task, t Turn) protocol.Parsed {
	tools, _ := l.toolsOf(task)
	parsed := l.protocol.Parse(t.Text, tools)
	if l.settings.Functions != nil {
		parsed.AnswerByCalls(t.Finish == policy.FinishLength)
	}
	return parsed
}

// absorb appends one turn with the given response and decides whether the episode continues.
func (l *Loop) absorb(ctx context.Context, e *Episode, t Turn) {
	t.Context, t.Observation = e.Context, e.Observation
	t.Text = strings.ToValidUTF8(l.tok.Decode(t.Response), "\uFFFD")
	if e.IsSummary(len(e.Turns)) {
		l.absorbSummary(ctx, e, t)
		return
	}
	t.Parsed = l.parse(e.Task, t)
	l.settings.resolve(t.Parsed.Calls)
	l.settings.Budgets.refuse(t.Parsed.Calls, e.countRunnable())
	e.Turns = append(e.Turns, t)
	e.Context, e.Observation = nil, ""
	switch {
	case l.protocol.Spec().Acts: // the environment decides, even if the response was cut off
	case t.Finish == policy.FinishLength:
		e.Finish = FinishLength
	case len(t.Parsed.Calls) == 0 && t.Parsed.AnswerTags > 0:
		e.Finish = FinishAnswered
	case len(t.Parsed.Calls) == 0:
		e.Finish = FinishNoAction
	case l.settings.hasAllTurns(e):
		e.Finish = FinishMaxTurns
	}
}
