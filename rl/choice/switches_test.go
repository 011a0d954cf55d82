package choice

import (
	"reflect"
	"strings"
	"testing"
)

type sectioned struct {
	Keep  int     `json:"keep" required:"true" min:"1" doc:"how many"`
	Mode  mode    `json:"mode" enum:"a|b" doc:"which"`
	Share float64 `json:"share" bare:"true" doc:"how much"`
	Made  bool    // set by a constructor
}

type weighing struct {
	Weight float64 `json:"weight" min:"0" quiet:"true"`
}

var (
	section = Choice{Name: "section", Field: "a section", Only: "trained", Settings: sectioned{Mode: "a"}}
	weight  = Choice{Name: "weight", Field: "a number", Settings: weighing{Weight: 0.25}}
	flag    = Choice{Name: "flag", Field: "a flag", Settings: struct{}{}}
	steps   = Choice{Name: "steps", Field: "a list", Settings: struct {
		List []int `json:"steps"`
	}{}}
)

func TestSwitches(t *testing.T) {
	want := []struct {
		name, kind, tag string
		defaults        map[string]string
	}{
		{"section", "*choice.sectioned", `doc:"a section" only:"trained"`, map[string]string{"mode": "a"}},
		{"weight", "float64", `doc:"a number" json:"weight" min:"0" quiet:"true" default:"0.25"`, nil},
		{"flag", "bool", `doc:"a flag" default:"false" quiet:"true"`, nil},
		{"steps", "[]int", `doc:"a list" json:"steps"`, nil},
	}
	for i, f := range Switches([]Choice{section, weight, flag, steps}) {
		w := want[i]
		if f.Name != w.name || f.Type.String() != w.kind || string(f.Tag) != w.tag {
			t.Errorf("field %d is %s %s %s, want %+v", i, f.Name, f.Type, f.Tag, w)
		}
		if !reflect.DeepEqual(f.Defaults, w.defaults) {
			t.Errorf("%s has the defaults %v, want %v", f.Name, f.Defaults, w.defaults)
		}
	}
}

func TestOn(t *testing.T) {
	set := Params{"section": &sectioned{Keep: 3, Mode: "b"}, "weight": 0.5, "flag": true, "steps": []int{2, 4}}
	for _, c := range []struct {
		choice Choice
		want   any
	}{
		{section, sectioned{Keep: 3, Mode: "b"}}, {weight, weighing{0.5}}, {flag, struct{}{}},
		{steps, struct {
			List []int `json:"steps"`
		}{[]int{2, 4}}},
	} {
		if got, on, err := c.choice.On(set); err != nil || !on || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %t, %v, want %+v", c.choice.Name, got, on, err, c.want)
		}
	}
	off := Params{"section": (*sectioned)(nil), "weight": 0.0, "flag": false, "steps": []int{}}
	for _, c := range []Choice{section, weight, flag, steps} {
		for _, p := range []Params{nil, off} {
			if got, on, err := c.On(p); on || got != nil || err != nil {
				t.Errorf("%s in %v: %+v, %t, %v, want it off", c.Name, p, got, on, err)
			}
		}
	}
}

func TestOnRefusesOtherSettings(t *testing.T) {
	for name, c := range map[string]struct {
		choice Choice
		value  any
		want   string
	}{
		"a flag for a section":      {section, true, "needs settings of the type choice.sectioned, got bool"},
		"another section":           {section, &weighing{1}, "got *choice.weighing"},
		"a section for a flag":      {flag, &sectioned{Keep: 1}, "got *choice.sectioned"},
		"a whole number for a real": {weight, 2, "parameter weight must be float64, got 2"},
	} {
		_, on, err := c.choice.On(Params{c.choice.Name: c.value})
		if !on || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %t and %v, want an error with %q", name, on, err, c.want)
		}
	}
}

func TestSection(t *testing.T) {
	p := Params{"section": &sectioned{Keep: 3}, "flag": true}
	if got := Section[sectioned](p, "section"); got == nil || got.Keep != 3 {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"flag", "absent"} {
		if got := Section[sectioned](p, name); got != nil {
			t.Errorf("%s: %+v, want nil", name, got)
		}
	}
}
