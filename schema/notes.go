package schema

// Notes of the manifest that prepares a run, about the engine.
const (
	NoteEngine    = "engine"     // the engine's kind
	NoteEngineWhy = "engine_why" // why it was chosen, where the recipe leaves the choice to the program
	// NoteServers is what was established about the inference servers that generate for it, as JSON (policy/servers,
	// Facts); absent if the engine itself generates.
	NoteServers = "servers"
	// NoteTinker is what was established about the Tinker server that trains, as JSON (policy/tinker, Facts); absent
	// for other engines.
	NoteTinker = "tinker"
)

// Notes about the user's own Python, with a line for each file: its SHA-256 and its name. The manifest that prepares a
// run has what was imported then, that of a stage which called the code what was imported until then.
const (
	NoteRewardCode      = "reward_code"
	NoteEnvironmentCode = "environment_code"
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
