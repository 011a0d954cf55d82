package resample

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Each declared filter matches what its link has always matched.
func TestDeclaredFilters(t *testing.T) {
	plain := Response{Text: "7", Tokens: []int32{1, 2, 3}, Length: 8, Limit: 9}
	for name, bad := range map[string]Response{
		"overlong":   {Length: 9, Limit: 9},
		"void_turns": {VoidTurns: 1, Limit: 9},
		"repetition": {Tokens: make([]int32, 40), Limit: 9},
		"unreadable": {Text: "7\uFFFD", Limit: 9},
	} {
		var on any = true
		if name == "repetition" {
			on = &Repetition{Gram: 2, Times: 3}
		}
		masks := Masks(choice.Params{name: on})
		if len(masks) != 1 || masks[0].Validate() != nil {
			t.Fatalf("%s makes %v", name, masks)
		}
		m := masks[0]
		if m.Masker.Mask(plain) || !m.Masker.Mask(bad) {
			t.Errorf("%s matches %v and %v, want false and true", name, m.Masker.Mask(plain), m.Masker.Mask(bad))
		}
	}
	if n := len(Filters()); n != 4 {
		t.Errorf("%d filters are declared, and 4 are tested", n)
	}
	if masks := Masks(choice.Params{"overlong": false, "repetition": (*Repetition)(nil)}); len(masks) != 0 {
		t.Errorf("switched off, they are %v", masks)
	}
	bad := Masks(choice.Params{"repetition": &Unreadable{}})[0]
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "filters.repetition needs settings") {
		t.Errorf("got %v", err)
	}
}

// The filter of CONTRIBUTING.md: responses that shout. In the tree it is a separate file, and one more line in
// filters.

var shouting = Filter{
	Choice: choice.Choice{
		Name: "shouting", Doc: "rows in capitals are masked", Source: "CONTRIBUTING.md", Settings: Shouting{Letters: 5},
		Field: "mask a row that is in capitals; null or absent = off",
	},
	Why: "shouting",
}

// Shouting masks texts of capitals.
type Shouting struct {
	Letters int `json:"letters" min:"1" max:"1000" doc:"least length of such a text"`
}

func (s Shouting) Mask(r Response) bool {
	return len(r.Text) >= s.Letters && strings.ToUpper(r.Text) == r.Text
}

// A filter needs nothing beyond its declaration: its link masks the rows that it matches.
func TestAddAFilter(t *testing.T) {
	if got := choice.Switches([]choice.Choice{shouting.Choice})[0]; got.Defaults["letters"] != "5" {
		t.Errorf("its section in recipes is %+v", got)
	}
	mask := Mask{Filter: shouting, Masker: Shouting{Letters: 3}}
	rows := []Row{{GroupID: "a", TrajectoryID: "1", Reward: 1}, {GroupID: "a", TrajectoryID: "2"}}
	for i, text := range []string{"SEVEN", "seven"} {
		if mask.Masker.Mask(Response{Text: text}) {
			rows[i].Matched = append(rows[i].Matched, shouting.Why)
		}
	}
	out, err := Chain{Links: []Link{mask}}.Select(rows)
	if err != nil {
		t.Fatal(err)
	}
	if first := out.Rows[0]; !first.Kept || !first.Masked || first.Reason != "shouting" || out.Rows[1].Masked {
		t.Errorf("got %+v", out.Rows)
	}
}
