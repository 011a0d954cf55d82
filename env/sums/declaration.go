package sums

import (
	"errors"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "sums", Doc: "questions about two numbers, for published models",
	Sandboxed: true, Protocol: "chat",
	Rewards:  []string{"last_number", "exact_match", "rstar2_outcome", "retool", "arlarena"},
	Settings: env.SettingsOf[fields](),
	Open:     open,
}

// fields are the settings in a recipe.
type fields struct {
	Operators string `json:"operators" doc:"the operators of problems, each equally likely" default:"\"+-\"" enum:"+|+-|+-*"`
	Lowest    int    `json:"lowest" doc:"smallest operand of a sum or a difference" default:"2" min:"0" max:"9999"`
	Highest   int    `json:"highest" doc:"largest operand of a sum or a difference" default:"99" min:"9" max:"9999"`
	Factor    int    `json:"factor" doc:"largest operand of a product; the smallest is 2" default:"12" min:"2" max:"999"`
}

func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil {
		return nil, err
	}
	if f.Lowest > f.Highest {
		return nil, errors.New("environment.settings.lowest: must be at most highest")
	}
	return &Sums{fields: f, seen: map[string]bool{},
		Questions: env.Questions{Gold: goldOf, Mark: env.SameNumber}}, nil
}
