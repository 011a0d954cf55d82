// Package judge asks a language model to judge answers, at an OpenAI-compatible address.
//
// Glossary. A *query* (reward.Query) is what a judge is asked: a question, a response and references. Its *prompt
// digest* names the messages that are sent. The *verdict* is Match or Mismatch. An answer is *broken* if the judge gave
// no verdict on it: it refused, its reply could not be read, or the server fails on this query and not on others. The
// judge is *away* if it takes no queries at all. A query can *begin* before its answer is needed (Begin).
//
//	queries → one request for each prompt digest → reply → reward.ReadJudgement → answers, in the order of the queries
//
// A verdict comes from the whole reply, which must be one of two words. No text that a policy writes is read as a
// verdict.
package judge

import (
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// Settings are the judge as a recipe names it.
type Settings struct {
	URL         string  `json:"url" required:"true" doc:"address of an OpenAI-compatible server up to the version, as http://host:8000/v1; it may hold references ${env:NAME} or ${file:PATH}, which the worker resolves"`
	Model       string  `json:"model" required:"true" doc:"the model to ask"`
	ServedAs    string  `json:"served_as" optional:"true" doc:"the model's name in the server's replies, if it is another one; a dated version of model counts as model. A reply of any other model is refused"`
	Key         string  `json:"key" optional:"true" doc:"reference to the secret that requests carry as bearer token: ${env:NAME} or ${file:PATH}; absent = none"`
	Criteria    string  `json:"criteria" optional:"true" doc:"what Match and Mismatch mean when a reward asks, in place of the reward's own words; evaluations keep theirs"`
	Temperature float64 `json:"temperature" default:"0" min:"0" max:"2" doc:"temperature of the judge's replies"`
	Seed        uint64  `json:"seed" default:"0" min:"0" max:"2147483647" doc:"seed of the first attempt at a reply; each reply that cannot be read raises it by one"`
	MaxTokens   int     `json:"max_tokens" default:"16" min:"1" max:"65536" doc:"tokens of a reply; a model that reasons needs room for that, and a server that leaves the reasoning out of the reply's text"`
	Seconds     float64 `json:"seconds" default:"60" above:"0" max:"3600" doc:"wall-clock time of one request, in seconds"`
	Attempts    int     `json:"attempts" default:"5" min:"1" max:"100" doc:"requests for one verdict: after failures of the server, with growing pauses, and after replies that cannot be read"`
	Concurrency int     `json:"concurrency" default:"8" min:"1" max:"1024" doc:"requests of one shard at a time"`
}

// Fault returns the first field with a value that no judge can be asked with, and what is wrong with it; "" if there is
// none.
func (s Settings) Fault() (field, text string) {
	const longest = 16 << 10
	if field, text := s.server().Fault(); text != "" {
		return field, text
	}
	if len(s.Criteria) > longest {
		return "criteria", fmt.Sprintf("must have at most %d bytes, got %d", longest, len(s.Criteria))
	}
	return "", ""
}

func (s Settings) server() openai.Server {
	return openai.Server{URL: s.URL, Key: s.Key, Limit: time.Duration(s.Seconds * float64(time.Second)),
		Attempts: s.Attempts, AtOnce: s.Concurrency, Bytes: replyBytes}
}

// replyBytes bounds the server's JSON. The longest reply has 65,536 tokens, of which few are longer than 16 bytes.
const replyBytes = 2 << 20
