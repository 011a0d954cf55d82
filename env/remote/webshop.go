package remote

import (
	_ "embed" // the wrapper
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/env"
)

// webShop is the module that plays WebShop's release.
//
//go:embed worlds/webshop_env.py
var webShop string

// OpenWebShop opens the environment of WebShop's release in a folder. Its engine runs in Python processes, like an
// environment of the user's own.
func OpenWebShop(folder string, o env.Options) (env.Environment, error) {
	for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
		value := o.Settings[name]
		if name != "release" && value != "" && value != false && fmt.Sprint(value) != "0" {
			return nil, fmt.Errorf("release: %s describes a generated shop, leave it out", name)
		}
	}
	f := pythonFields{Module: "webshop_env:Shop", Path: folder, Kwargs: fmt.Sprintf(`{"turns": %d}`, o.MaxTurns),
		commonFields: commonFields{
			Instruction: "You shop on a web page. Actions are search[keywords] and click[button].",
			StepSeconds: 60, MaxKB: 64, Sessions: 64, IdleSeconds: 120}}
	e, err := f.open("webshop", webShop)
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return e, nil
}
