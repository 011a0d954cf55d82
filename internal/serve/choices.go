package serve

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/policy"
)

// Reasons for which a choice ends, as OpenAI names them.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishCalls  = "tool_calls"
)

// token is one token of an answer.
type token struct {
	id      int32
	logProb *float32 // nil of a prompt's first token
	top     []policy.TokenLogProb
	offset  int // characters before it
}

// delta is what is new of a choice; all of an answer is the sum of its deltas.
type delta struct {
	choice     int
	text       string
	tokens     []token // those of the prompt first, if it is repeated
	ids        []int32 // of the response
	entropies  []float32
	finish     string
	stopReason any // the text or the id that ended the response
	first      bool
}

// plus appends a later delta of the same choice.
func (d *delta) plus(later delta) {
	d.choice, d.text = later.choice, d.text+later.text
	d.tokens, d.ids = append(d.tokens, later.tokens...), append(d.ids, later.ids...)
	d.entropies = append(d.entropies, later.entropies...)
	d.finish, d.stopReason = later.finish, later.stopReason
	d.first = d.first || later.first
}

// choice is one response that is being made.
type choice struct {
	job    *job
	out    textOut
	places textOut // counts characters: text as the tokens spell it
	offset int
	echo   *string // the prompt's text, if the answer begins with it
	first  bool    // whether nothing has come yet
	ended  bool
}

// answer is a request's choices on their way.
type answer struct {
	p       *params
	m       *Model
	inbox   *inbox
	choices []*choice
	reused  int // tokens of prompts that were not computed again
	tokens  int // sampled
	weights string
}

func newAnswer(p *params, m *Model) *answer { return &answer{p: p, m: m, inbox: newInbox()} }

// add adds rows of one prompt.
func (a *answer) add(rows []policy.BatchRow, echo *string) {
	for _, r := range rows {
		c := &choice{
			job: &job{row: r, choice: len(a.choices), inbox: a.inbox}, echo: echo, first: true,
			out: textOut{stops: a.p.stop, keep: a.p.keepStop},
		}
		a.choices = append(a.choices, c)
	}
}

// run queues the rows and calls emit with each delta. It returns when all choices have ended, and gives the rows up
// when the client is gone or emit fails.
func (a *answer) run(ctx context.Context, s *scheduler, emit func(delta) error) error {
	var jobs []*job
	for _, c := range a.choices {
		jobs = append(jobs, c.job)
	}
	if err := s.submit(jobs); err != nil {
		return err
	}
	left := len(a.choices)
	defer func() {
		if left > 0 {
			s.drop(jobs)
		}
	}()
	for left > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.inbox.ready:
		}
		events, weights, failed := a.inbox.take()
		a.weights = cmp.Or(a.weights, weights)
		for _, e := range events {
			c := a.choices[e.choice]
			if c.ended {
				continue // a stop text ended it, and the engine had gone on already
			}
			if e.Err != nil {
				return fault(500, typeServer, "the model's output is not finite: %v", e.Err)
			}
			d := a.delta(c, e)
			if c.ended {
				if left--; e.Finish == "" {
					s.drop([]*job{c.job})
				}
			}
			if err := emit(d); err != nil {
				return err
			}
		}
		if failed != nil && left > 0 {
			return failed
		}
	}
	return nil
}

// delta makes the delta of an event.
func (a *answer) delta(c *choice, e choiceEvent) delta {
	d := delta{choice: e.choice, first: c.first}
	c.first = false
	if e.Prefixed {
		a.reused += e.Reused
		if c.echo != nil {
			d.text, d.tokens = *c.echo, a.prompt(c, e)
		}
	}
	ended := e.Finish == policy.FinishStop
	if e.Sampled {
		a.tokens++
		d.ids, d.entropies = []int32{e.Token}, []float32{e.Entropy}
		d.tokens = append(d.tokens, a.token(c, e.Token, &e.LogProb, e.Top))
		piece := a.m.Tokens.Decode([]int32{e.Token})
		marks := a.p.form != nil && a.p.form.Marked(piece) // calls or reasoning
		if a.p.skipSpecial && a.m.special[e.Token] && !marks || ended && !a.p.keepStop {
			piece = ""
		}
		text, found := c.out.push(piece)
		d.text += text
		if found != "" {
			c.ended, d.finish, d.stopReason = true, finishStop, found
			return d
		}
	}
	switch e.Finish {
	case policy.FinishStop:
		c.ended, d.finish = true, finishStop
		if !slices.Contains(a.m.stop, e.Token) || slices.Contains(a.p.stopIDs, e.Token) {
			d.stopReason = e.Token
		}
	case policy.FinishLength:
		c.ended, d.finish = true, finishLength
	}
	if c.ended {
		d.text += c.out.end()
	}
	return d
}

// prompt lists the prompt's tokens with their log-probabilities.
func (a *answer) prompt(c *choice, e choiceEvent) []token {
	var out []token
	for i, id := range c.job.row.Prefix {
		var logProb *float32
		var top []policy.TokenLogProb
		if i > 0 && i-1 < len(e.Scores) {
			logProb, top = &e.Scores[i-1].LogProb, e.Scores[i-1].Top
		}
		out = append(out, a.token(c, id, logProb, top))
	}
	return out
}

// token describes a token, and counts the characters that it adds.
func (a *answer) token(c *choice, id int32, logProb *float32, top []policy.TokenLogProb) token {
	t := token{id: id, logProb: logProb, top: top, offset: c.offset}
	text, _ := c.places.push(a.m.Tokens.Decode([]int32{id}))
	c.offset += utf8.RuneCountInString(text)
	return t
}

// usage is what a request has cost.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (a *answer) usage() usage {
	u := usage{Completion: a.tokens}
	for i := 0; i < len(a.choices); i += a.p.n {
		u.Prompt += len(a.choices[i].job.row.Prefix)
	}
	u.Total = u.Prompt + u.Completion
	u.Details.Cached = a.reused
	return u
}

// envelope holds the fields that all answers begin with.
type envelope struct {
	ID          string      `json:"id"`
	Object      string      `json:"object"`
	Created     int64       `json:"created"`
	Model       string      `json:"model"`
	Fingerprint string      `json:"system_fingerprint"`
	Choices     []any       `json:"choices"`
	Usage       *usage      `json:"usage,omitempty"`
	Prompt      []int32     `json:"prompt_token_ids,omitempty"` // of a chat
	Ropewalk    weightsNote `json:"ropewalk"`
}

// weightsNote names the weights behind an answer.
type weightsNote struct {
	Weights string `json:"weights"`
}

func newEnvelope(prefix, object, model string) envelope {
	return envelope{ID: prefix + randomName(), Object: object, Created: time.Now().Unix(), Model: model}
}

// with returns the envelope with choices.
func (e envelope) with(weights string, choices ...any) envelope {
	e.Choices, e.Ropewalk.Weights, e.Fingerprint = choices, weights, "ropewalk-"+weights[:min(len(weights), 16)]
	if e.Choices == nil {
		e.Choices = []any{}
	}
	return e
}
