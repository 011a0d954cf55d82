// Package choice holds what every choice of a method states about itself: its name, its source, its parameters and
// what it needs from the rest of a training step.
//
// Glossary. A *choice* is one name that a place in a recipe can take, for example the loss ppo_clip. A *switch* is a
// choice that is on or off, for example the resampling rule roc. A *parameter* is a field of a recipe that only some
// choices read. A choice declares its parameters as a struct with tags, its *settings*; the value of that struct holds
// the defaults. *Params* are the parameters that one recipe sets.
//
// The settings decide what a recipe writes for a switch: true or false if there are none, the value itself if the only
// parameter has the switch's own name, and else a section, which may be absent.
//
// The lists loss.Declarations, advantage.Declarations, … hold one declaration for each choice. Package method joins
// them to the slot table, and everything else is read from that table: the fields of recipes, their JSON schema and
// reference page, validation, `ropewalk methods`, and the settings that tests and benchmarks use.
//
// The tags of a settings struct:
//
//	json      name of the parameter in a recipe
//	doc       what it is, with its unit
//	min, max  inclusive limits
//	above     exclusive lower limit
//	enum      the names allowed, separated by |
//	quiet     "true": left out of a recipe's canonical form at its default
//	required  "true": a recipe must set it (sections of switches only)
//	bare      "true": it has no default; a slot inside the section may have one for each choice
//
// A parameter that several choices share is described where it comes first; the others only name it. A field of a
// settings struct without a json tag is not a parameter: the constructor of the choice sets it.
package choice
