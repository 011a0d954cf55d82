package loss

import "github.com/ropewalk/ropewalk/rl/choice"

var referenceTerm = Term{Choice: choice.Choice{
	Name: "reference", Doc: "the reference follows the policy", Source: "rStar2 §4.3 (between stages)",
	Field:    "the reference policy where it is not the one that training started from; null or absent = that one",
	Settings: ReferenceSettings{},
}}

// ReferenceSettings say which policy the penalty is against.
type ReferenceSettings struct {
	RefreshEvery int `json:"refresh_every" required:"true" min:"1" max:"1000000" doc:"after every refresh_every steps the current policy becomes the reference"`
}
