package openai

import "github.com/ropewalk/ropewalk/env"

// Declaration declares imported conversations as an environment of recipes.
var Declaration = env.Declaration{
	Name: "openai", Doc: "imported conversations in OpenAI's chat format, the trials of a task a group",
	Imported: true, Rewards: []string{"reference"},
}
