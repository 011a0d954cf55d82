package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/secret"
)

// Server says where a model is served, and how long and how often it is asked.
type Server struct {
	URL      string        // address up to the version, as http://host:8000/v1; it may hold references to secrets
	Key      string        // a reference to the secret that each request carries as bearer token; "" = none
	Header   string        // the header that carries the secret as it is; "" = Authorization, as bearer token
	Limit    time.Duration // of one attempt
	Attempts int           // at most, for one question
	Bytes    int64         // of one reply at most; 0 = defaultBytes
	AtOnce   int           // connections that are kept open; 0 = 1
	// Authorities is a PEM file with the certificates of those who may vouch for the server; "" = the system's.
	Authorities string
	// Wait pauses between attempts; nil = by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// defaultBytes bounds a reply. It holds far more than the longest text that a model writes.
const defaultBytes = 4 << 20

// Fault returns the first field with a value that no client can be opened with, and what is wrong with it; "" if there
// is none.
func (s Server) Fault() (field, text string) {
	for _, f := range []struct{ field, text string }{{"url", s.URL}, {"key", s.Key}} {
		if fault := secret.Malformed(f.text); fault != "" {
			return f.field, fault
		}
	}
	if s.Key != "" && !secret.Whole(s.Key) {
		return "key", "must be a reference to a secret, ${env:NAME} or ${file:PATH}, and not the secret itself"
	}
	if _, fault := parse(secret.Masked(s.URL)); fault != "" && secret.Masked(s.URL) != "x" {
		return "url", fault
	}
	return "", ""
}

// parse checks an address without references.
func parse(address string) (*url.URL, string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, "must be an address that begins with http:// or https://"
	case u.User != nil:
		return nil, "must hold no user and password; use key"
	case u.RawQuery != "" || u.Fragment != "":
		return nil, "must end with a path, such as /v1"
	}
	return u, ""
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	server  Server
	address *url.URL
	key     string
	secrets secret.Values
	http    *http.Client
}

// Open resolves the server's references. It sends nothing.
func Open(s Server) (*Client, error) {
	c := &Client{server: s}
	c.server.Bytes = cmp.Or(s.Bytes, defaultBytes)
	if c.server.Wait == nil {
		c.server.Wait = Wait
	}
	base, err := c.secrets.Resolve("url", s.URL)
	if err != nil {
		return nil, &Error{Kind: Setup, text: err.Error()}
	}
	u, fault := parse(base)
	if fault != "" {
		return nil, &Error{Kind: Setup, text: "url: " + fault}
	}
	if c.key, err = c.secrets.Resolve("key", s.Key); err != nil {
		return nil, &Error{Kind: Setup, text: err.Error()}
	}
	c.address = u
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: max(1, s.AtOnce), ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute,
	}
	if s.Authorities != "" {
		if transport.TLSClientConfig, err = trusting(s.Authorities); err != nil {
			return nil, &Error{Kind: Setup, text: "authorities: " + err.Error()}
		}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the key is sent to the address of the recipe alone
	}}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// Request asks a model for the next message of a chat.
type Request struct {
	Model       string    `json:"model"`
	Messages    []Message `json:"messages"`
	Temperature float64   `json:"temperature"`
	Seed        uint64    `json:"seed"`
	MaxTokens   int       `json:"max_tokens"`
}

// Reply is what a model wrote.
type Reply struct {
	Content string // text of the message; "" if the server sent none
	Refusal string // what the server says where the model refuses
	Finish  string // why the text ends: stop, length, content_filter …; "" if the server does not say
	Model   string // the model's name as the server says it; "" if it does not
}

// completion is the part of the server's JSON that is read.
type completion struct {
	Model   string `json:"model"`
	Choices []struct {
		Finish  string `json:"finish_reason"`
		Message *struct {
			Content *string `json:"content"`
			Refusal *string `json:"refusal"`
		} `json:"message"`
	} `json:"choices"`
}

// Chat asks until accept returns nil, and pauses between attempts as their errors say. Each reply that accept refuses
// raises the seed by one, because a model at temperature 0 would write the same again; an error of accept that Stop has
// made is the last. Chat returns the last reply, also with an error, and the number of attempts.
func (c *Client) Chat(ctx context.Context, r Request, accept func(Reply) error) (reply Reply, attempts int, err error) {
	for attempts = 1; ; attempts++ {
		var got Reply
		if got, err = c.once(ctx, r); err == nil {
			reply = got
			if err = accept(got); err == nil {
				return reply, attempts, nil
			}
			r.Seed++
		}
		var known *Error
		var last stopped
		retry := !errors.As(err, &last) && (!errors.As(err, &known) || known.Retry())
		if ctx.Err() != nil {
			return reply, attempts, ctx.Err()
		}
		if !retry || attempts >= c.server.Attempts {
			return reply, attempts, err
		}
		if known != nil {
			if err := c.server.Wait(ctx, known.Pause(attempts)); err != nil {
				return reply, attempts, err
			}
		}
	}
}

// Stop returns an error that ends Chat without another attempt.
func Stop(err error) error { return stopped{err} }

type stopped struct{ error }

// Unwrap returns the error itself.
func (s stopped) Unwrap() error { return s.error }

// once sends one request.
func (c *Client) once(ctx context.Context, r Request) (Reply, error) {
	data, err := c.Do(ctx, Call{Method: http.MethodPost, Path: "chat/completions", Body: r})
	if err != nil {
		return Reply{}, err
	}
	var got completion
	if err := json.Unmarshal(data, &got); err != nil {
		return Reply{}, c.fault(Malformed, "its reply is no chat completion: %v", badinput.JSON(err))
	}
	if len(got.Choices) != 1 || got.Choices[0].Message == nil {
		return Reply{}, c.fault(Malformed, "its reply has %d choices with a message, want 1", len(got.Choices))
	}
	m := got.Choices[0].Message
	return Reply{Content: c.clean(m.Content), Refusal: c.clean(m.Refusal), Finish: got.Choices[0].Finish,
		Model: c.clean(&got.Model)}, nil
}

// clean removes secrets and bytes that are no text.
func (c *Client) clean(text *string) string {
	if text == nil {
		return ""
	}
	return c.secrets.Conceal(strings.ToValidUTF8(strings.ReplaceAll(*text, "\x00", "\uFFFD"), "\uFFFD"))
}
