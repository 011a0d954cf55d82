// Package openaitest serves chat completions by a script, for tests: honest and hostile ones.
package openaitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// Request is what the server was sent.
type Request struct {
	openai.Request
	Authorization string
}

// User is the text of the last message.
func (r Request) User() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[len(r.Messages)-1].Content
}

// Server answers requests by its script. It listens on loopback.
type Server struct {
	URL string // up to the version

	http *httptest.Server
	lock sync.Mutex
	seen []Request
}

// Answer writes the reply to a request; n counts the requests, from 0.
type Answer func(w http.ResponseWriter, r Request, n int)

// New starts a server that ends with the test.
func New(t testing.TB, answer Answer) *Server {
	t.Helper()
	s := &Server{}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := Request{Authorization: r.Header.Get("Authorization")}
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &got.Request) != nil || r.URL.Path != "/v1/chat/completions" ||
			r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		s.lock.Lock()
		n := len(s.seen)
		s.seen = append(s.seen, got)
		s.lock.Unlock()
		answer(w, got, n)
	}))
	s.URL = s.http.URL + "/v1"
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Seen returns the requests so far.
func (s *Server) Seen() []Request {
	s.lock.Lock()
	defer s.lock.Unlock()
	return append([]Request{}, s.seen...)
}

// Say replies with a text, as the model that was asked.
func Say(w http.ResponseWriter, r Request, text string) {
	SayAs(w, r.Model, text, "stop")
}

// SayAs replies with a text as a model, with a reason why it ends.
func SayAs(w http.ResponseWriter, model, text, finish string) {
	w.Header().Set("Content-Type", "application/json")
	data, err := json.Marshal(map[string]any{"id": "c", "object": "chat.completion", "model": model, "choices": []any{
		map[string]any{"index": 0, "finish_reason": finish, "message": map[string]any{"role": "assistant",
			"content": text}}}})
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(data) // the client may be gone
}

// Fail replies with a status and a message in OpenAI's form.
func Fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"test"}}`, message)
}

// Refuse replies with a refusal.
func Refuse(w http.ResponseWriter, r Request) {
	fmt.Fprintf(w, `{"model":%q,"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":null,`+
		`"refusal":"I cannot help with that"}}]}`, r.Model)
}

// Cut closes the connection in the middle of a reply.
func Cut(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"model":"m","choices":[{"finish_reason":"stop","mess`)
	Drop(w)
}

// Drop closes the connection without another byte.
func Drop(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// Hang says nothing until the client leaves or the time is over.
func Hang(w http.ResponseWriter, most time.Duration) {
	_ = http.NewResponseController(w).Flush()
	time.Sleep(most)
}

// Drip sends a space now and then, until the client leaves or the time is over.
func Drip(w http.ResponseWriter, most time.Duration) {
	until := time.Now().Add(most)
	for time.Now().Before(until) {
		if _, err := io.WriteString(w, " "); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		time.Sleep(10 * time.Millisecond)
	}
}

// Flood sends so many bytes of JSON.
func Flood(w http.ResponseWriter, bytes int64) {
	_, _ = io.WriteString(w, `{"model":"m","choices":[{"finish_reason":"stop","message":{"content":"`)
	chunk := strings.Repeat("Match ", 1<<16)
	for sent := int64(0); sent < bytes; sent += int64(len(chunk)) {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `"}}]}`)
}
