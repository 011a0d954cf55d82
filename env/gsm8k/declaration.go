package gsm8k

import "github.com/ropewalk/ropewalk/env"

// Declaration declares the imported solutions as an environment of recipes.
var Declaration = env.Declaration{
	Name: "gsm8k-solutions", Doc: "imported solutions of GSM8K questions, four a group", Source: "Cobbe et al. 2021",
	Imported: true, Sandboxed: true, Rewards: []string{"math_answer"},
}
