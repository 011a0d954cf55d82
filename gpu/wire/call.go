package wire

// Calls.
const (
	CallLoad     = "load"
	CallSave     = "save"
	CallSaved    = "saved"
	CallGenerate = "generate"
	CallForward  = "forward"
	CallBackward = "backward"
	CallDiscard  = "discard"
	CallStep     = "step"
	CallState    = "state"
	CallUnload   = "unload"
	CallShutdown = "shutdown"
)

// Names of arrays.
const (
	NameTokens    = "tokens"
	NameLengths   = "lengths"
	NameStreams   = "streams"
	NameMaxTokens = "max_tokens"
	NameLogProbs  = "logprobs"
	NameEntropies = "entropies"
	NameValues    = "values"
	NameFinish    = "finish"
	NameTop       = "top"
)

// Outputs of a forward pass.
const (
	OutLogProb = "logprob"
	OutEntropy = "entropy"
	OutValue   = "value"
)

// Elements of the array finish.
const (
	FinishStop uint8 = iota
	FinishLength
)

// Head begins every call.
type Head struct {
	Type string `json:"type"`
	ID   uint64 `json:"id"`
	Call string `json:"call"`
}

// Begin is the head of a call.
func Begin(id uint64, call string) Head { return Head{Type: TypeCall, ID: id, Call: call} }

// Load is a call; likewise the types below.
type Load struct {
	Head
	Role      string `json:"role"`
	Dir       string `json:"dir"`
	Optimizer bool   `json:"optimizer"`
	Digest    string `json:"digest"`
}

// Save asks the engine to write the model of a role to the folder Dir.
type Save struct {
	Head
	Role string `json:"role"`
	Dir  string `json:"dir"`
}

// Saved tells the engine the digest of the checkpoint that it has just saved.
type Saved struct {
	Head
	Role   string `json:"role"`
	Digest string `json:"digest"`
}

// Generate has the arrays tokens, lengths, streams and max_tokens.
type Generate struct {
	Head
	Role        string  `json:"role"`
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"top_k"` // 0 = all tokens
	TopP        float64 `json:"top_p"` // 0 and 1 = all tokens
	MinP        float64 `json:"min_p"` // 0 = all tokens
	Stop        []int32 `json:"stop"`
	// Top likeliest tokens are wanted at each of the first TopTokens tokens of a row; 0 = none.
	Top       int `json:"top"`
	TopTokens int `json:"top_tokens"`
}

// Forward has the arrays tokens and lengths.
type Forward struct {
	Head
	Role        string   `json:"role"`
	Temperature float64  `json:"temperature"`
	Outputs     []string `json:"outputs"`
	Keep        bool     `json:"keep"`
}

// Backward has the array lengths and the cotangents that are not zero.
type Backward struct {
	Head
	Role string `json:"role"`
	Kept uint64 `json:"kept"`
}

// Step asks for one optimiser step of a role.
type Step struct {
	Head
	Role      string         `json:"role"`
	LR        float64        `json:"lr"`
	ClipNorm  float64        `json:"clip_norm"`
	Optimizer string         `json:"optimizer"` // its name
	Settings  map[string]any `json:"settings"`  // the optimiser's, as recipes name them
}

// OfRole is a call that has a role alone: discard, state and unload.
type OfRole struct {
	Head
	Role string `json:"role"`
}

// Shutdown ends the engine.
type Shutdown struct{ Head }

// Answer begins every answer, and is all of some.
type Answer struct {
	Type         string  `json:"type"`
	ID           uint64  `json:"id"`
	Seconds      float64 `json:"seconds"`       // spent in the call
	TorchSeconds float64 `json:"torch_seconds"` // of these, in the models' own work
}

// Time makes every answer tell its times.
func (a Answer) Time() (seconds, torch float64) { return a.Seconds, a.TorchSeconds }

// LoadAnswer answers Load with the loaded model.
type LoadAnswer struct {
	Answer
	Digest string   `json:"digest"`
	Step   int64    `json:"step"`
	Params int64    `json:"params"`
	Reused []string `json:"reused"`
}

// SaveAnswer answers Save with the number of optimiser steps taken.
type SaveAnswer struct {
	Answer
	Step int64 `json:"step"`
}

// ForwardAnswer answers Forward. Kept names the kept activations.
type ForwardAnswer struct {
	Answer
	Kept uint64 `json:"kept"`
}

// StepAnswer answers Step with the result of the optimiser step.
type StepAnswer struct {
	Answer
	GradNorm float64 `json:"grad_norm"`
	Clipped  bool    `json:"clipped"`
	Step     int64   `json:"step"`
}

// StateAnswer answers a state call with the state of a role.
type StateAnswer struct {
	Answer
	Loaded bool   `json:"loaded"`
	Digest string `json:"digest"`
	Step   int64  `json:"step"`
	Params int64  `json:"params"`
}
