package choice

import (
	"fmt"
	"slices"
	"strings"
)

// Declaration is what the list of a kind holds: a struct that embeds a Choice.
type Declaration interface {
	// Self returns the embedded choice.
	Self() Choice
}

// Self returns the choice itself, for lists of structs that embed one.
func (c Choice) Self() Choice { return c }

// Declared returns the declaration with that name.
func Declared[D Declaration](list []D, name string) (d D, ok bool) {
	i := slices.IndexFunc(list, func(d D) bool { return d.Self().Name == name })
	if i < 0 {
		return d, false
	}
	return list[i], true
}

// Names lists the names of the declarations.
func Names[D Declaration](list []D) []string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Self().Name
	}
	return names
}

// Find returns the declaration with that name. The error names the kind and lists the others.
func Find[D Declaration](kind string, list []D, name string) (D, error) {
	d, ok := Declared(list, name)
	if !ok {
		return d, fmt.Errorf("%s %q is not implemented; there are %s", kind, name, strings.Join(Names(list), ", "))
	}
	return d, nil
}

// Set returns the choice's settings with the parameters that a recipe sets; the others have their defaults. The error
// names the kind and the choice.
func (c Choice) Set(kind string, params Params) (any, error) {
	settings, err := params.Into(c.Settings)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, c.Name, err)
	}
	return settings, nil
}
