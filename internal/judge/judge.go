package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/schema"
)

var (
	// ErrAway means that the judge takes no queries at the moment; a later attempt may succeed.
	ErrAway = errors.New("the judge is away")
	// ErrSettings means that someone must change the recipe's judge section, or what its references name.
	ErrSettings = errors.New("the judge cannot be asked with these settings")
)

// Answer is what became of a query.
type Answer struct {
	PromptDigest string           // SHA-256 of the messages
	Verdict      reward.Judgement // "" if Broken
	AnsweredBy   string           // the model's name in the reply
	Reply        string           // what the model wrote; if Broken, the last that could not be read
	Attempts     int              // requests
	Broken       error            // why there is no verdict
}

// Judge asks one model. It is safe for concurrent use.
type Judge struct {
	settings Settings
	client   *openai.Client
	memory   *Memory
	run      string

	slots chan struct{} // bounds the queries that are asked
	alive sync.Mutex    // held while the judge is tried out

	early  sync.Mutex
	begun  map[string]*ahead // by digest
	failed atomic.Bool       // a prompt that has begun ended with an error
	asking sync.WaitGroup
}

// Open resolves the references of the settings for a run. It sends nothing. memory may be nil.
func Open(s Settings, memory *Memory, run string) (*Judge, error) {
	client, err := openai.Open(s.server())
	if err != nil {
		return nil, fmt.Errorf("%w: judge.%w", ErrSettings, err)
	}
	return &Judge{settings: s, client: client, memory: memory, run: run,
		slots: make(chan struct{}, max(1, s.Concurrency))}, nil
}

// Close waits for what has begun, and closes connections.
func (j *Judge) Close() {
	j.asking.Wait()
	j.client.Close()
}

// Ask asks every query and returns the answers in their order. Queries with the same prompt are asked once. done is
// called with the number of distinct prompts that are answered, not concurrently; it may be nil. The error wraps
// ErrAway or ErrSettings, unless ctx has ended.
func (j *Judge) Ask(ctx context.Context, queries []reward.Query, done func(n int)) ([]Answer, error) {
	if done == nil {
		done = func(int) {}
	}
	prompts := make([]prompt, len(queries))
	first := map[string]int{} // by digest
	var distinct []int
	for i, q := range queries {
		prompts[i] = j.prompt(q)
		if _, asked := first[prompts[i].digest]; !asked {
			first[prompts[i].digest] = i
			distinct = append(distinct, i)
		}
	}
	out := make([]Answer, len(queries))
	var lock sync.Mutex
	answered := 0
	err := rescue.Each(ctx, j.settings.Concurrency, len(distinct), func(ctx context.Context, n int) (err error) {
		i := distinct[n]
		if out[i], err = j.answered(ctx, prompts[i]); err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		answered++
		done(answered)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, p := range prompts {
		out[i] = out[first[p.digest]]
	}
	return out, j.useless(out, distinct)
}

// useless is an error if the judge has answered several prompts and none of its replies is a verdict: then it is the
// judge that is broken, and not the answers.
func (j *Judge) useless(answers []Answer, distinct []int) error {
	for _, i := range distinct {
		if answers[i].Broken == nil {
			return nil
		}
	}
	if len(distinct) < 2 {
		return nil
	}
	return fmt.Errorf("%w: it gave no verdict on any of %d answers; the first: %w", ErrAway, len(distinct),
		answers[distinct[0]].Broken)
}

// prompt is a query as it is sent.
type prompt struct {
	messages []openai.Message
	digest   string
}

func (j *Judge) prompt(q reward.Query) prompt {
	system, user := q.Prompt()
	p := prompt{messages: []openai.Message{{Role: "system", Content: system}, {Role: "user", Content: user}}}
	text, err := json.Marshal(p.messages)
	if err != nil {
		panic(fmt.Sprintf("judge: encode messages: %v", err)) // they are texts
	}
	p.digest = schema.Digest(text)
	return p
}

// answer asks one prompt, or remembers what was answered before.
func (j *Judge) answer(ctx context.Context, p prompt) (Answer, error) {
	if a, ok := j.memory.find(j.asked(p.digest)); ok {
		return a, nil
	}
	a := Answer{PromptDigest: p.digest}
	reply, attempts, err := j.client.Chat(ctx, j.request(p), func(r openai.Reply) (err error) {
		a.Verdict, err = j.read(r)
		return err
	})
	a.Reply, a.AnsweredBy, a.Attempts = reply.Content, reply.Model, attempts
	if reply.Content == "" {
		a.Reply = reply.Refusal
	}
	if err == nil {
		j.memory.keep(j.asked(a.PromptDigest), a)
		return a, nil
	}
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	a.Verdict = ""
	a.Broken = err
	return a, j.blame(ctx, err)
}

func (j *Judge) request(p prompt) openai.Request {
	return openai.Request{Model: j.settings.Model, Messages: p.messages, Temperature: j.settings.Temperature,
		Seed: j.settings.Seed, MaxTokens: j.settings.MaxTokens}
}

// errUnread is a reply that is no verdict.
type errUnread struct{ text string }

func (e errUnread) Error() string { return e.text }

// read returns the verdict of a reply.
func (j *Judge) read(r openai.Reply) (reward.Judgement, error) {
	if !j.isModel(r.Model) {
		return "", openai.Stop(fmt.Errorf("%w: judge.model: %s was asked, and %.100q answers; if that is the same "+
			"model, set judge.served_as", ErrSettings, j.settings.Model, r.Model))
	}
	switch {
	case r.Refusal != "", r.Finish == "content_filter":
		return "", errUnread{fmt.Sprintf("the judge refuses: %.200q", r.Refusal+r.Content)}
	case r.Finish != "" && r.Finish != "stop":
		return "", errUnread{fmt.Sprintf("the judge's reply ends with %.40q: %.200q", r.Finish, r.Content)}
	}
	verdict, ok := reward.ReadJudgement(r.Content)
	if !ok {
		return "", errUnread{fmt.Sprintf("the judge's reply is neither Match nor Mismatch: %.200q", r.Content)}
	}
	return verdict, nil
}

// dated is what follows a model's name in that of its dated version.
var dated = regexp.MustCompile(`^-(\d{4}|\d{8}|\d{4}-\d{2}-\d{2})$`)

// isModel reports whether the server's name of the model is that of the settings. A server may name none.
func (j *Judge) isModel(name string) bool {
	if name == "" || name == j.settings.Model || name == j.settings.ServedAs {
		return true
	}
	version, ok := strings.CutPrefix(name, j.settings.Model)
	return ok && dated.MatchString(version)
}

// blame decides whose fault it is that a prompt has no verdict: an error if it is the judge's or the settings', nil if
// only the prompt is broken.
func (j *Judge) blame(ctx context.Context, err error) error {
	var unread errUnread
	var known *openai.Error
	switch {
	case errors.Is(err, ErrSettings):
		return err
	case errors.As(err, &unread):
		return nil
	case !errors.As(err, &known):
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	switch known.Kind {
	case openai.Denied:
		return fmt.Errorf("%w: judge.key: %w", ErrSettings, err)
	case openai.NotFound:
		return fmt.Errorf("%w: judge.url or judge.model: %w", ErrSettings, err)
	case openai.Throttled, openai.Unreachable:
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	tried := j.tryOut(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case tried == nil: // it answers, so it fails on this prompt
		return nil
	case known.Kind == openai.Rejected:
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// tryOut asks a question that any model can answer. An error means that the server gives no replies. Tries do not
// overlap, so that a server in trouble is not asked by all shards' requests at once.
func (j *Judge) tryOut(ctx context.Context) error {
	j.alive.Lock()
	defer j.alive.Unlock()
	p := prompt{messages: []openai.Message{{Role: "user", Content: "Write the word Match and nothing else."}}}
	_, _, err := j.client.Chat(ctx, j.request(p), func(openai.Reply) error { return nil })
	return err
}
