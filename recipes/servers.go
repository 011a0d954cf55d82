package recipes

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/policy/servers"
)

// serversFault checks that inference servers can be asked.
func serversFault(all []servers.Server) string {
	for i, s := range all {
		if field, text := s.Fault(); text != "" {
			return fmt.Sprintf("server %s: %s: %s", s.Name(), field, text)
		}
		if slices.ContainsFunc(all[:i], func(o servers.Server) bool {
			return o.Name() == s.Name() && o.Model == s.Model
		}) {
			return fmt.Sprintf("must name each server once, got %s twice", s.Name())
		}
	}
	return ""
}
