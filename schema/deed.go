package schema

import (
	"strings"
	"time"
)

// DeedsPrefix is the prefix of the notes on who did what to runs.
const DeedsPrefix = "deeds/"

// NoRun takes a run's place in the keys of deeds that are about no single run. No run can have this name.
const NoRun = "_"

// Deed notes that someone asked for something to be done to a run, to schedules, quotas or the bucket, before it was
// done. Deeds are added and never changed or removed.
type Deed struct {
	Action string `json:"action"`           // start, resume, replay, end, gc …, the name of an update, or DeedAmend
	Detail string `json:"detail,omitempty"` // what the action was asked with
	Actor  string `json:"actor"`            // who asked, as the asking command knows it
	Host   string `json:"host"`             // where
	At     string `json:"at"`               // RFC 3339 with microseconds, UTC
	// Manifest is the key of what was committed, for the action amend: the change of the recipe. That manifest names no
	// one, because later stages name it by its digest, and an equal change must give equal bytes.
	Manifest string `json:"manifest,omitempty"`
}

// DeedAmend is the action of a worker that has committed a change of a run's recipe, with who asked for it.
const DeedAmend = "amend"

// DeedConfirm is the action of a command that lets workers of a local stack use the programs and secrets that a recipe
// names. Its detail is the recipe's digest, in quotes. It is about a run, or with NoRun about the runs of a schedule.
const DeedConfirm = "confirm"

// DeedRetry is a command that has a parked run try again, with its changes of the recipe.
const DeedRetry = "retry"

// DeedReplay is a command that started a replay, with its input.
const DeedReplay = "replay"

// DeedDelete is a command that deleted the run. Its data that could not be deleted is that of no run.
const DeedDelete = "delete"

// NewDeed makes a note at a time.
func NewDeed(action, detail, actor, host string, at time.Time) Deed {
	return Deed{Action: action, Detail: detail, Actor: actor, Host: host, At: at.UTC().Format(stateTime)}
}

// DeedKey is the key of a note. The keys of a run's notes sort by their times; id tells those of one moment apart.
func DeedKey(run string, d Deed, id string) string {
	at := strings.NewReplacer("-", "", ":", "").Replace(d.At)
	return DeedsPrefix + run + "/" + at + "-" + id + ".json"
}
