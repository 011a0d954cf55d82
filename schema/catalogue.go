package schema

import (
	"encoding/json"
	"strings"
	"time"
)

// CatalogueEntry describes a run for listings of runs. No stage reads it, so it may hold a time.
type CatalogueEntry struct {
	Run     string `json:"run"`
	Recipe  string `json:"recipe"`
	Seed    uint64 `json:"seed"`
	Steps   int    `json:"steps"`   // of the recipe; 0 if nothing is trained
	Created string `json:"created"` // RFC 3339, UTC
}

// CataloguePrefix is the prefix of the catalogue's entries, one per run.
const CataloguePrefix = "catalogue/"

// CatalogueKey is the key of a run's entry.
func CatalogueKey(run string) string { return CataloguePrefix + run + ".json" }

// Request records what a command has asked for. It exists from before the workflow starts until the run's recipe is
// committed, so that a run whose command is killed in between can be listed and resumed.
type Request struct {
	CatalogueEntry
	Workflow string          `json:"workflow"`       // its type
	Digest   string          `json:"digest"`         // of the resolved recipe
	File     string          `json:"file,omitempty"` // digest of the file that an import reads
	Input    json.RawMessage `json:"input"`          // of the workflow
}

// RequestsPrefix is the prefix of the requests, at most one per run.
const RequestsPrefix = "requests/"

// RequestKey is the key of a run's request.
func RequestKey(run string) string { return RequestsPrefix + run + ".json" }

// PrunedFile is the name of the note that replaces the files of a checkpoint that were deleted on purpose.
const PrunedFile = "pruned.json"

// NoteResult is the note of a manifest that holds the result of its activity as JSON.
const NoteResult = "result"

// NoteSource and NoteSourceDigest are the notes of an import stage's manifest that name the uploaded file: its key in
// the store and its SHA-256 in hexadecimal.
const (
	NoteSource       = "source"
	NoteSourceDigest = "source_digest"
)

// NoteExcludedShards is the note of a resample stage's manifest that lists the skipped shards as JSON. If no shard was
// skipped, there is no note.
const NoteExcludedShards = "excluded_shards"

// StatRows and StatTokens are the statistics of a manifest that count what its activity processed: rows, and tokens
// sampled or trained on. StatExcluded counts the step's excluded trajectories, or an evaluation's excluded episodes;
// the manifest has it if there are any.
const (
	StatRows     = "rows"
	StatTokens   = "tokens"
	StatExcluded = "excluded"
)

// Statistics of an evaluation's manifest that not every evaluation has: the mean score, in an environment that grades
// episodes; exact match and F1, in one whose questions have several right answers; a judge's
// verdicts, where the recipe asks for them.
const (
	StatScore      = "score"
	StatExactMatch = "exact_match"
	StatF1         = "f1"
	StatJudged     = "judged" // share of answers that a judge found to mean the same as the correct ones
)

// StatContrast is the statistic of the manifest of stage contrast: the estimated KL of the replay's policy from the
// run's own, in nats for each token.
const StatContrast = "kl"

// Statistics of the manifest of stage logprobs, where inference servers sampled: the absolute differences between their
// log-probabilities and the trainer's over the shard's tokens, in nats (rl/diagnose, Mismatch).
const (
	StatMismatchTokens = "mismatch_tokens"
	StatMismatchMean   = "mismatch_mean"
	StatMismatchP99    = "mismatch_p99"
	StatMismatchMax    = "mismatch_max"
	StatMismatchBeyond = "mismatch_beyond" // share of tokens whose probabilities differ by more than 1%
)

// StateNote says how a run was when its state last changed. Notes are for listings by readers who ask no Temporal
// server; no stage reads them. A run's notes are never changed or removed, so they are its history.
type StateNote struct {
	State  string `json:"state"`            // running, paused, parked, interrupted, cancelled or failed
	Kind   string `json:"kind,omitempty"`   // of the failure of a parked or failed run
	Reason string `json:"reason,omitempty"` // what failed, or who ended the run
	At     string `json:"at"`               // RFC 3339 with microseconds, UTC
}

// The states of a run that a workflow shows and notes; package analysis/status says what they mean.
const (
	StateRunning      = "running"
	StatePaused       = "paused"
	StateParked       = "parked"
	StateInterrupted  = "interrupted"
	StateStoppedEarly = "stopped_early"
	StateCancelled    = "cancelled"
	StateFailed       = "failed"
	StateDone         = "done"
)

// StatesPrefix is the prefix of the notes of all runs' states.
const StatesPrefix = "states/"

// stateTime is the form of a note's time. Notes sort by it.
const stateTime = "2006-01-02T15:04:05.000000Z"

// NewStateNote makes the note that a run's state has changed at a time.
func NewStateNote(state, kind, reason string, at time.Time) StateNote {
	return StateNote{State: state, Kind: kind, Reason: reason, At: at.UTC().Format(stateTime)}
}

// StateKey is the key of a note. The keys of a run's notes sort by their times.
func StateKey(run string, n StateNote) string {
	at := strings.NewReplacer("-", "", ":", "").Replace(n.At)
	return StatesPrefix + run + "/" + at + "-" + n.State + ".json"
}
