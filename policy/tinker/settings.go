package tinker

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// Server is a server as a recipe names it.
type Server struct {
	URL         string  `json:"url" required:"true" doc:"address of the server, without /api/v1, as http://host:8000; it may hold references ${env:NAME} or ${file:PATH}, which the worker resolves"`
	Token       string  `json:"token" optional:"true" doc:"reference to the secret that requests carry as X-API-Key: ${env:NAME} or ${file:PATH}; absent = none"`
	Authorities string  `json:"authorities" optional:"true" doc:"absolute path of a PEM file on the worker: the certificates of those who may vouch for an https server; absent = the system's"`
	BaseModel   string  `json:"base_model" required:"true" doc:"the server's name of the model at policy.checkpoint"`
	Parallel    int     `json:"parallel" default:"16" min:"1" max:"4096" doc:"responses that the server is asked for at once"`
	Seconds     float64 `json:"seconds" default:"600" above:"0" max:"86400" doc:"wall-clock time of one request and its result, in seconds; a server that takes longer hangs"`
	Attempts    int     `json:"attempts" default:"5" min:"1" max:"100" doc:"tries of one request, where another may help and does no harm"`
	Tolerance   float64 `json:"tolerance" default:"0.02" above:"0" max:"10" doc:"how far the log-probabilities of a few tokens may be from those of our own forward pass and from those of an earlier save, in nats per token on average; about 1e-5 in float32, 0.02 in bfloat16"`
	Verify      bool    `json:"verify" default:"true" quiet:"true" doc:"the base and the first adapter are compared with a forward pass of our own, on the worker's processor; false for models that do not fit in its memory"`
}

// Fault returns the first field with a value that no server can be asked with, and what is wrong with it; "" if there
// is none.
func (s Server) Fault() (field, text string) {
	if field, text := s.address().Fault(); text != "" {
		if field == "key" {
			field = "token"
		}
		return field, text
	}
	if s.Authorities != "" && !filepath.IsAbs(s.Authorities) {
		return "authorities", fmt.Sprintf("must be an absolute path, got %s", s.Authorities)
	}
	return "", ""
}

// keyHeader carries the secret of a server.
const keyHeader = "X-API-Key"

// mostReply bounds a reply that is no file: log-probabilities of a micro-batch.
const mostReply = 256 << 20

// address is the server as package openai takes it.
func (s Server) address() openai.Server {
	return openai.Server{URL: s.URL, Key: s.Token, Header: keyHeader, Limit: seconds(s.Seconds), Attempts: s.Attempts,
		AtOnce: s.Parallel, Authorities: s.Authorities, Bytes: mostReply}
}

// Name is how errors and the record name the server. References stay references.
func (s Server) Name() string { return "tinker " + s.URL }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// withDefaults fills in what a recipe's defaults would be, for callers without a recipe.
func (s Server) withDefaults() Server {
	s.Parallel, s.Attempts = cmp.Or(s.Parallel, 16), cmp.Or(s.Attempts, 5)
	s.Seconds, s.Tolerance = cmp.Or(s.Seconds, 600), cmp.Or(s.Tolerance, 0.02)
	return s
}

// LoRA is the adapter that trains.
type LoRA struct {
	Rank    int
	Alpha   float64  // the product B·A is multiplied with Alpha/Rank
	Targets []string // projections with an adapter: those of attention, of the feed-forward layer, or all
	Seed    uint64   // of a new adapter's random numbers
}

// Alpha is what servers multiply with; the API has no field for it.
const Alpha = 32

// The projections that the API can choose, each group as a whole.
var (
	attention   = []string{"q_proj", "k_proj", "v_proj", "o_proj"}
	feedForward = []string{"gate_proj", "up_proj", "down_proj"}
)

// Choosable reports whether the API can give exactly these projections an adapter.
func Choosable(targets []string) bool {
	a, f := count(targets, attention), count(targets, feedForward)
	return a+f == len(targets) && a+f > 0 && (a == 0 || a == len(attention)) && (f == 0 || f == len(feedForward))
}

func count(of, among []string) (n int) {
	for _, name := range among {
		for _, t := range of {
			if t == name {
				n++
			}
		}
	}
	return n
}

// Options say how an engine is opened.
type Options struct {
	Server  Server
	LoRA    LoRA
	Scratch string       // folder for the files of loaded models; "" = the system's for temporary files
	Score   policy.Score // nil: nothing is compared with our own forward pass
	// Wait pauses; nil = by the clock.
	Wait func(ctx context.Context, d time.Duration) error
	// Beat is the time between heartbeats; 0 = ten seconds.
	Beat time.Duration
}
