package schema

// Notes of the manifest that prepares a run, about the engine.
const (
	NoteEngine    = "engine"     // the engine's kind
	NoteEngineWhy = "engine_why" // why it was chosen, where the recipe leaves the choice to the program
)

// NoteEvaluates is the note of the manifest that prepares an evaluation of its own: the policy that it measures, as
// JSON. The manifest of a training or an import does not have it.
const NoteEvaluates = "evaluates"

// Notes of an amendment's manifest.
const (
	NoteFromStep = "from_step" // the first step under the changed recipe
	NoteChanges  = "set"       // the changes, separated by spaces
	NoteVoid     = "void"      // of a number without an amendment: the changes that were refused
)
