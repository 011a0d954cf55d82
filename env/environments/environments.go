// Package environments lists the environments that recipes can name. A new environment is a package with a declaration,
// plus one line here. Recipe fields, their schema, the reference page, `ropewalk methods` and the stages of a run are
// derived from the declaration.
package environments

import (
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/env/household"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/env/mix"
	"github.com/ropewalk/ropewalk/env/openai"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/env/searchqa"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/env/sums"
)

// All lists the environments.
var All = []env.Declaration{
	calc.Declaration,
	openai.Declaration,
	household.Declaration,
	webshop,
	sokoban.Declaration,
	math.DAPO,
	math.TIR,
	math.RStar2,
	searchqa.SearchQA,
	searchqa.DeepResearch,
	math.Plain,
	math.Chat,
	math.QA,
	math.Calls,
	code.Declaration,
	remote.Python,
	mix.Declaration,
	remote.OpenEnv,
	sums.Declaration,
}

// Named returns the declaration with that name. ok is false if there is none.
func Named(name string) (d env.Declaration, ok bool) {
	i := slices.IndexFunc(All, func(d env.Declaration) bool { return d.Name == name })
	if i < 0 {
		return env.Declaration{}, false
	}
	return All[i], true
}
