package schema

// CatalogueEntry says, for a listing of runs, what a run is. No stage reads it, so it may hold a time.
type CatalogueEntry struct {
	Run     string `json:"run"`
	Recipe  string `json:"recipe"`
	Seed    uint64 `json:"seed"`
	Steps   int    `json:"steps"`   // of the recipe; 0 where nothing is trained
	Created string `json:"created"` // RFC 3339, UTC
}

// CataloguePrefix is the common prefix of the catalogue's entries, one a run.
const CataloguePrefix = "catalogue/"

// CatalogueKey is where a run's entry lies.
func CatalogueKey(run string) string { return CataloguePrefix + run + ".json" }

// PrunedFile is the note beside the place of a checkpoint whose files were deleted on purpose.
const PrunedFile = "pruned.json"

// NoteResult is the note of a manifest that holds its activity's result as JSON.
const NoteResult = "result"

// NoteExcludedShards is the note of a resample stage's manifest that holds, as JSON, the shards
// that were skipped; without such shards there is no note.
const NoteExcludedShards = "excluded_shards"

// StatRows and StatTokens are the statistics of a manifest that count what its activity worked on:
// rows, and tokens sampled or trained on. StatExcluded, of a resample stage with any, counts the
// step's excluded trajectories.
const (
	StatRows     = "rows"
	StatTokens   = "tokens"
	StatExcluded = "excluded"
)
