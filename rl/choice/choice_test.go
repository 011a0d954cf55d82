package choice

import (
	"reflect"
	"strings"
	"testing"
)

type mode string

type first struct {
	Low  float64 `json:"low" min:"0" doc:"a bound"`
	Mode mode    `json:"mode" enum:"a|b" doc:"a mode"`
	Rest int     // no parameter
}

type second struct {
	Low float64 `json:"low"`
	On  bool    `json:"on" doc:"a switch"`
}

var list = []Choice{
	{Name: "first", Settings: first{Low: 0.5, Mode: "a", Rest: 7}, Reads: Reading("shared")},
	{Name: "second", Settings: second{Low: 0.00025}},
	{Name: "third"},
}

func TestFields(t *testing.T) {
	var got []string
	for _, f := range Fields(list) {
		standard, ok := f.Tag.Lookup("default")
		got = append(
			got,
			strings.Join(
				[]string{f.Name, f.Type.String(), f.Tag.Get("doc"), standard, map[bool]string{true: "shared"}[ok]}, "/",
			),
		)
	}
	want := []string{"low/float64/a bound//", "mode/string/a mode/a/shared", "on/bool/a switch/false/shared"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
	want0 := []Param{{Name: "shared"}, {"low", "0.5"}, {Name: "mode"}}
	if got, want := list[0].Params(list), want0; !reflect.DeepEqual(got, want) {
		t.Errorf("first reads %v, want %v", got, want)
	}
	if got, want := list[1].Params(list), []Param{{"low", "0.00025"}, {Name: "on"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("second reads %v, want %v", got, want)
	}
}

// A list that contradicts itself is a programming error, which any test of the list meets.
func TestFieldsRefuseContradictions(t *testing.T) {
	for want, settings := range map[string]any{
		"parameter new has no description": struct {
			New int `json:"new"`
		}{},
		"parameter low has the type int, and": struct {
			Low int `json:"low"`
		}{},
		"parameter low is described twice": struct {
			Low float64 `json:"low" doc:"again"`
		}{},
		"choice other: parameter mode has the typ": struct {
			Mode bool `json:"mode"`
		}{},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, want) {
					t.Errorf("it says %q, want %q", said, want)
				}
			}()
			Fields(append([]Choice{list[0]}, Choice{Name: "other", Settings: settings}))
		}()
	}
}

func TestInto(t *testing.T) {
	got, err := Params{"low": 0.75, "mode": "b"}.Into(list[0].Settings)
	if want := (first{Low: 0.75, Mode: "b", Rest: 7}); err != nil || got != want {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
	if list[0].Settings != any(first{Low: 0.5, Mode: "a", Rest: 7}) {
		t.Error("the declared defaults have changed")
	}
	for want, p := range map[string]Params{
		"no parameter on":               {"on": true},
		"parameter low must be float64": {"low": 1},
		"parameter mode must be":        {"mode": nil},
	} {
		if _, err := p.Into(list[0].Settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestFaultSeesDefaults(t *testing.T) {
	c := list[0]
	c.Rules = []Rule{{Param: "low", Doc: "low below 1", Fault: func(p Params) string {
		if p["low"].(float64) < 1 && p["mode"] == "a" {
			return ""
		}
		return "is too high"
	}}}
	if fault := c.Fault("low", "low below 1", nil); fault != "" {
		t.Errorf("the defaults break the rule: %s", fault)
	}
	if fault := c.Fault("low", "low below 1", Params{"low": 2.0}); fault != "is too high" {
		t.Errorf("got %q", fault)
	}
	if fault := c.Fault("low", "another rule", Params{"low": 2.0}); fault != "" {
		t.Errorf("got %q", fault)
	}
}
