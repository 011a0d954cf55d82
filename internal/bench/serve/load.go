package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// perStream is how many requests each stream sends in a measurement.
const perStream = 2

// load is what the sides are asked for: prompts of so many tokens, none of which begins like another, and so many new
// tokens.
type load struct {
	words          [][]int32 // the tokens of each of some words
	prompt, tokens int
}

// text holds the words of prompts. What a model continues plain words with is text that every server can send.
const text = "the ship river stone letter winter garden summer bread king morning window paper mountain shadow road " +
	"silver music island forest corner bridge doctor valley candle market harbour engine story evening"

// prompts are prompts of random words.
func (w load) prompts(r *rand.Rand, n int) [][]int32 {
	out := make([][]int32, n)
	for i := range out {
		for len(out[i]) < w.prompt {
			out[i] = append(out[i], w.words[r.IntN(len(w.words))]...)
		}
		out[i] = out[i][:w.prompt]
	}
	return out
}

// measured is one measurement.
type measured struct {
	rate  float64   // tokens per second
	first []float64 // seconds to the first token, by request
}

// side is one of the things that are compared. measure gives it the load of so many streams.
type side struct {
	name    string
	measure func(ctx context.Context, streams int) (measured, error)
}

// dialect is how a server is asked.
type dialect struct {
	ready string // path that answers 200 once the model is loaded
	path  string
	// body is the request for so many new tokens, streamed.
	body func(prompt []int32, tokens int, seed uint64) map[string]any
	// tokens reads how many new tokens the last piece of a stream counts, 0 from the others.
	tokens func(piece []byte) (int, error)
}

var ropewalk = dialect{
	ready: "/health", path: "/v1/completions",
	body: func(prompt []int32, tokens int, seed uint64) map[string]any {
		return map[string]any{"model": "model", "prompt": prompt, "max_tokens": tokens, "temperature": 1, "seed": seed,
			"ignore_eos": true, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	},
	tokens: func(piece []byte) (int, error) {
		var p struct {
			Usage struct { // null in vLLM's other pieces
				Tokens int `json:"completion_tokens"`
			} `json:"usage"`
		}
		err := json.Unmarshal(piece, &p)
		return p.Usage.Tokens, err
	},
}

var llama = dialect{
	ready: "/health", path: "/completion",
	body: func(prompt []int32, tokens int, seed uint64) map[string]any {
		return map[string]any{"prompt": prompt, "n_predict": tokens, "temperature": 1, "seed": seed,
			"samplers": []string{"temperature"}, "ignore_eos": true, "stream": true, "cache_prompt": false}
	},
	tokens: func(piece []byte) (int, error) {
		var p struct {
			Stop   bool `json:"stop"`
			Tokens int  `json:"tokens_predicted"`
		}
		if err := json.Unmarshal(piece, &p); err != nil || !p.Stop {
			return 0, err
		}
		return p.Tokens, nil
	},
}

// vllm is asked as ropewalk is, without seeds, each of which costs it a generator of its own.
var vllm = dialect{
	ready: ropewalk.ready, path: ropewalk.path, tokens: ropewalk.tokens,
	body: func(prompt []int32, tokens int, seed uint64) map[string]any {
		body := ropewalk.body(prompt, tokens, seed)
		delete(body, "seed")
		return body
	},
}

// server is a side that is asked over HTTP.
func (w load) server(name, url string, d dialect) side {
	var turn uint64
	return side{name, func(ctx context.Context, streams int) (measured, error) {
		turn++
		return w.measure(ctx, url, d, streams, turn)
	}}
}

// measure has all streams send their requests. Its prompts differ from those of other turns.
func (w load) measure(ctx context.Context, url string, d dialect, streams int, turn uint64) (measured, error) {
	var m measured
	var mu sync.Mutex
	total := 0
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range streams {
		group.Go(func() error {
			rng := rand.New(rand.NewPCG(turn, uint64(i)))
			for range perStream {
				tokens, first, err := w.ask(ctx, url, d, rng)
				if err != nil {
					return err
				}
				mu.Lock()
				total, m.first = total+tokens, append(m.first, first)
				mu.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	m.rate = float64(total) / time.Since(began).Seconds()
	return m, err
}

// client opens a connection for each request: llama.cpp's server closes idle ones while a request is on its way.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask sends one request and reads its stream. first is the time to its first piece, in seconds.
func (w load) ask(ctx context.Context, url string, d dialect, rng *rand.Rand) (tokens int, first float64, err error) {
	prompt := w.prompts(rng, 1)[0]
	body, err := json.Marshal(d.body(prompt, w.tokens, rng.Uint64()>>33))
	if err != nil {
		return 0, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+d.path, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	began := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
		return 0, 0, fmt.Errorf("%s: %s", response.Status, text)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		piece, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || piece == "[DONE]" {
			continue
		}
		if first == 0 {
			first = time.Since(began).Seconds()
		}
		n, err := d.tokens([]byte(piece))
		if err != nil {
			return 0, 0, fmt.Errorf("read %q: %w", piece, err)
		}
		tokens = max(tokens, n)
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	if tokens != w.tokens {
		return 0, 0, fmt.Errorf("%d new tokens, want %d", tokens, w.tokens)
	}
	return tokens, first, nil
}
