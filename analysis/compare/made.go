package compare

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
)

// digestShown is how many digits of a digest texts show.
const digestShown = 16

var digest = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// Short shortens the digests in a text.
func Short(text string) string {
	return digest.ReplaceAllStringFunc(text, func(d string) string { return d[:digestShown] })
}

// MadeBy compares programs, engines and machines, of one run or of several.
func MadeBy(origins []analysis.Origin) []Row {
	each := func(name string, of func(analysis.Origin) string) Row {
		values := make([]string, len(origins))
		for i, o := range origins {
			values[i] = of(o)
		}
		return row(name, values)
	}
	out := []Row{
		each("recipe", func(o analysis.Origin) string { return o.Config }),
		each("program", programs),
		each("engine", func(o analysis.Origin) string { return o.Engine }),
		each("device", func(o analysis.Origin) string { return o.Device }),
	}
	names := map[string]bool{}
	for _, o := range origins {
		for name := range o.Machine {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, each("warm start "+name, func(o analysis.Origin) string { return o.Machine[name] }))
	}
	return append(out,
		each("hosts", func(o analysis.Origin) string { return strings.Join(o.Hosts, ", ") }),
		each("first policy", func(o analysis.Origin) string { return o.Policy }),
	)
}

// programs names the programs by their digests, each but the first with the step from which it worked on the run.
func programs(o analysis.Origin) string {
	var words []string
	for i, p := range o.Programs {
		text := p.Name()
		if i > 0 {
			text += fmt.Sprintf(" from step %d", p.From)
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}
