package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// completions reads the fields of POST /v1/completions.
func (s *Server) completions(f *fields, p *params) (*answer, form, *apiError) {
	m := s.o.Model
	p.budget = f.whole("max_tokens", usualLength, 0, math.MaxInt32)
	_, p.logProbs = f.take("logprobs")
	p.top = f.whole("logprobs", 0, 0, mostTop)
	echo := f.boolean("echo", false)
	begin := f.boolean("add_special_tokens", true)
	const no = "is not supported"
	f.only("suffix", no, `""`)
	f.only("best_of", "is not supported with another value than n", fmt.Sprint(p.n))
	if p.budget == 0 && !echo {
		f.fail(invalid("max_tokens", "must be 1 at least, unless the prompt is repeated (echo)"))
	}
	prompts := f.prompts("prompt", m, begin)
	all := len(prompts) * p.n
	if all > mostChoices {
		f.fail(invalid("prompt", "%d prompts of %d choices are more than %d", len(prompts), p.n, mostChoices))
	}
	if err := f.done(); err != nil {
		return nil, form{}, err
	}
	if len(p.seeds) > 1 && len(p.seeds) != all {
		return nil, form{}, invalid("seed", "has %d entries for %d choices", len(p.seeds), all)
	}
	a := newAnswer(p, m)
	for i, prompt := range prompts {
		rows, err := p.rows(prompt.ids, i*p.n, s.context, m)
		if err != nil {
			return nil, form{}, err
		}
		for j := range rows {
			rows[j].Score = echo && p.logProbs || p.budget == 0
		}
		var text *string
		if echo {
			text = &prompt.text
		}
		a.add(rows, text)
	}
	return a, completionForm(a, s.o.Name), nil
}

// prompt is one prompt: its ids, and its text.
type prompt struct {
	ids  []int32
	text string
}

// prompts reads one prompt or a list: each is a text or a list of ids.
func (f *fields) prompts(name string, m *Model, begin bool) []prompt {
	raw, ok := f.take(name)
	if !ok {
		f.fail(invalid(name, "is missing"))
		return nil
	}
	const want = "must be a text, a list of token ids, or a list of either"
	one, err := readPrompt(raw, m, begin)
	if err == nil {
		return []prompt{one}
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil || len(many) == 0 {
		f.fail(invalid(name, "%s", want))
		return nil
	}
	if len(many) > mostChoices {
		f.fail(invalid(name, "%d prompts are more than %d", len(many), mostChoices))
		return nil
	}
	var out []prompt
	for i, raw := range many {
		p, err := readPrompt(raw, m, begin)
		if err != nil {
			f.fail(invalid(name, "entry %d: %s", i, want))
			return nil
		}
		out = append(out, p)
	}
	return out
}

func readPrompt(raw json.RawMessage, m *Model, begin bool) (p prompt, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) {
		if err := json.Unmarshal(raw, &p.text); err != nil {
			return p, err
		}
		p.ids = m.encode(p.text, begin)
		return p, nil
	}
	if err := json.Unmarshal(raw, &p.ids); err != nil {
		return p, err
	}
	p.text = validText(m.Tokens.Decode(p.ids))
	return p, nil
}

// completionChoice is a choice of an answer.
type completionChoice struct {
	Index      int                 `json:"index"`
	Text       string              `json:"text"`
	LogProbs   *completionLogProbs `json:"logprobs"`
	Finish     *string             `json:"finish_reason"`
	StopReason any                 `json:"stop_reason"`
	extras
}

// completionLogProbs are log-probabilities in the form of completions: lists with an entry for each token.
type completionLogProbs struct {
	Offset   []int                `json:"text_offset"`
	LogProbs []*float32           `json:"token_logprobs"`
	Tokens   []string             `json:"tokens"`
	Top      []map[string]float32 `json:"top_logprobs"`
}

func completionForm(a *answer, name string) form {
	one := func(d delta) any {
		c := completionChoice{Index: d.choice, Text: d.text, StopReason: d.stopReason}
		if d.finish != "" {
			c.Finish = &d.finish
		}
		if a.p.logProbs {
			c.LogProbs = completionTokens(a, d.tokens)
		}
		c.extras = a.extras(d)
		if a.p.ids && d.first {
			c.Prompt = a.choices[d.choice].job.row.Prefix
		}
		return c
	}
	return form{envelope: newEnvelope("cmpl-", "text_completion", name), chunk: "text_completion", choice: one}
}

func completionTokens(a *answer, tokens []token) *completionLogProbs {
	out := &completionLogProbs{Offset: []int{}, LogProbs: []*float32{}, Tokens: []string{}, Top: []map[string]float32{}}
	for _, t := range tokens {
		text := tokenText(a.m, t.id, a.p.idNames)
		out.Offset, out.LogProbs = append(out.Offset, t.offset), append(out.LogProbs, t.logProb)
		out.Tokens = append(out.Tokens, text)
		var top map[string]float32
		if t.logProb != nil {
			top = map[string]float32{}
			for _, other := range t.top {
				name := tokenText(a.m, other.Token, a.p.idNames)
				if _, there := top[name]; !there {
					top[name] = other.LogProb
				}
			}
			top[text] = *t.logProb
		}
		out.Top = append(out.Top, top)
	}
	return out
}

// extras are the fields of a choice that OpenAI's API does not have; nil = not asked for.
type extras struct {
	IDs       any     `json:"token_ids,omitempty"`
	Prompt    []int32 `json:"prompt_token_ids,omitempty"`
	Entropies any     `json:"entropies,omitempty"`
}

func (a *answer) extras(d delta) (out extras) {
	if a.p.ids {
		out.IDs = append([]int32{}, d.ids...)
	}
	if a.p.entropies {
		out.Entropies = append([]float32{}, d.entropies...)
	}
	return out
}
