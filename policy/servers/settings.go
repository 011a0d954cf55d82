package servers

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// The kinds of servers.
const (
	KindRopewalk = "ropewalk"
	KindLlama    = "llama"
	KindVLLM     = "vllm"
	KindSGLang   = "sglang"
	KindTensorRT = "tensorrt"
	KindOpenAI   = "openai"
	KindChat     = "chat"
)

// Server is an inference server as a recipe names it.
type Server struct {
	Kind        string  `json:"kind" required:"true" enum:"ropewalk|llama|vllm|sglang|tensorrt|openai|chat" doc:"the program that serves: ropewalk serve, llama.cpp's llama-server, vLLM, SGLang, TensorRT-LLM, or another with OpenAI's completions or its chat completions, which gives text alone and cannot train"`
	URL         string  `json:"url" required:"true" doc:"address of the server, without /v1, as http://host:8000, and of kind chat with it, as http://host:8000/v1; it may hold references ${env:NAME} or ${file:PATH}, which the worker resolves"`
	Token       string  `json:"token" optional:"true" doc:"reference to the secret that requests carry as bearer token: ${env:NAME} or ${file:PATH}; absent = none"`
	Authorities string  `json:"authorities" optional:"true" doc:"absolute path of a PEM file on the worker: the certificates of those who may vouch for an https server; absent = the system's"`
	Model       string  `json:"model" optional:"true" doc:"the model's name in requests and replies; absent = the only one that the server has"`
	Folder      string  `json:"folder" optional:"true" doc:"absolute path of a folder that the worker writes each new version of the policy to and the server reads it from; absent = the server's weights never change"`
	FolderThere string  `json:"folder_there" optional:"true" doc:"the path of folder as the server sees it; absent = the same"`
	Dtype       string  `json:"dtype" default:"float32" enum:"float32|bfloat16" quiet:"true" doc:"numbers of the weights that are written to folder; ropewalk reads the policy's own files"`
	Parallel    int     `json:"parallel" default:"8" min:"1" max:"4096" doc:"responses that the server is asked for at once"`
	Tokens      int     `json:"tokens" default:"0" min:"0" max:"1073741824" quiet:"true" doc:"tokens of the prompts and budgets of those responses together; 0 = as many as the KV cache holds, if the server says so"`
	StreamFrom  int     `json:"stream_from" default:"0" min:"0" max:"1073741824" quiet:"true" doc:"budget in tokens from which a response of vllm, sglang, tensorrt and llama is streamed: if the server is lost, another one continues after the tokens that have come; 0 = 512"`
	Seconds     float64 `json:"seconds" default:"600" above:"0" max:"86400" doc:"wall-clock time of one response, in seconds; a server that takes longer hangs"`
	LoadSeconds float64 `json:"load_seconds" default:"600" above:"0" max:"86400" doc:"wall-clock time in which the server takes new weights, in seconds"`
	Attempts    int     `json:"attempts" default:"5" min:"1" max:"100" doc:"requests for one response, on this server and others, and failures in a row after which the server gets no more requests"`
	Tolerance   float64 `json:"tolerance" default:"0.02" above:"0" max:"10" doc:"how far the log-probabilities of the probe may be from those of our own forward pass after an update, in nats per token on average; about 1e-5 in float32, 0.02 in bfloat16"`
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
	for _, f := range []struct{ field, path string }{
		{"authorities", s.Authorities}, {"folder", s.Folder}, {"folder_there", s.FolderThere},
	} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			return f.field, fmt.Sprintf("must be an absolute path, got %s", f.path)
		}
	}
	switch {
	case s.FolderThere != "" && s.Folder == "":
		return "folder_there", "is another path of folder, which is absent"
	case (s.Kind == KindOpenAI || s.Kind == KindChat) && s.Folder != "":
		return "folder", "has no use: nothing tells a server of kind " + s.Kind + " to read weights"
	case s.Kind == KindTensorRT && s.Folder != "":
		return "folder", "has no use: TensorRT-LLM reads no new weights from a folder, so it evaluates and cannot train"
	case (s.Kind == KindOpenAI || s.Kind == KindChat) && s.Model == "":
		return "model", "is required for kind " + s.Kind
	}
	return "", ""
}

// address is the server as package openai takes it.
func (s Server) address() openai.Server {
	return openai.Server{URL: s.URL, Key: s.Token, Limit: seconds(s.Seconds), Attempts: s.Attempts, AtOnce: s.Parallel,
		Authorities: s.Authorities, Bytes: mostReply}
}

// Name is how errors and the record name the server. References stay references.
func (s Server) Name() string { return s.Kind + " " + s.URL }

// there is the path of a file of folder as the server sees it.
func (s Server) there(name string) string {
	return filepath.Join(cmp.Or(s.FolderThere, s.Folder), name)
}

// streamFrom is the default of StreamFrom.
const streamFrom = 512

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// withDefaults fills in what a recipe's defaults would be, for callers without a recipe.
func (s Server) withDefaults() Server {
	s.Seconds, s.LoadSeconds = cmp.Or(s.Seconds, 600), cmp.Or(s.LoadSeconds, 600)
	s.Parallel, s.Attempts = cmp.Or(s.Parallel, 8), cmp.Or(s.Attempts, 5)
	s.Tolerance, s.Dtype = cmp.Or(s.Tolerance, 0.02), cmp.Or(s.Dtype, "float32")
	s.StreamFrom = cmp.Or(s.StreamFrom, streamFrom) // also in recipes: the zero value is left out of them
	return s
}
