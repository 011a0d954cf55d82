package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// none is what a finding has where there is nothing.
const none = "-"

// OfTemporal compares a server's namespace with temporal.yaml.
func OfTemporal(conf temporalconf.Config, name string, have stack.TemporalState) (f Findings) {
	if have.Namespace {
		f.add(OK, "namespace "+name, "exists", "exists", "")
	} else {
		f.add(Missing, "namespace "+name, "exists", none, "")
	}
	switch {
	case !have.Namespace:
		f.add(Missing, "retention", hours(conf.Retention), none, "")
	case have.Retention < conf.Retention:
		f.add(Missing, "retention", hours(conf.Retention), hours(have.Retention), "")
	default:
		f.add(OK, "retention", "≥ "+hours(conf.Retention), hours(have.Retention), "")
	}
	for _, attribute := range slices.Sorted(maps.Keys(conf.SearchAttributes)) {
		f.attribute(attribute, conf.SearchAttributes[attribute], have.Attributes[attribute])
	}
	for _, q := range conf.Queues.All() {
		workers := have.Workers[q.Name]
		what := "queue " + q.Name
		if workers == 0 {
			f.add(Note, what, "a worker", none, "start one: ropewalk worker --queues "+q.Name)
			continue
		}
		f.add(OK, what, "a worker", count(workers, "worker"), "")
	}
	return f
}

func (f *Findings) attribute(name, need, have string) {
	what := "search attribute " + name
	switch {
	case have == "":
		f.add(Missing, what, need, none, "")
	case have != need:
		f.add(Conflict, what, need, have, "remove it, or use another namespace (TEMPORAL_NAMESPACE)")
	default:
		f.add(OK, what, need, have, "")
	}
}

// hours writes a retention as Temporal's own commands take it: 720h.
func hours(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
