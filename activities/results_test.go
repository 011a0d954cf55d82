package activities_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

// results collects the results of registered activities, and the structs in them.
type results struct {
	worker.ActivityRegistry
	of      map[string]string
	structs map[string]string
}

func (r *results) RegisterActivityWithOptions(execute any, o activity.RegisterOptions) {
	r.of[o.Name] = r.name(reflect.TypeOf(execute).Out(0))
}

// name returns a type's name, and describes the structs in it.
func (r *results) name(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + r.name(t.Elem())
	case reflect.Slice:
		return "[]" + r.name(t.Elem())
	case reflect.Map:
		return "map[" + t.Key().Name() + "]" + r.name(t.Elem())
	case reflect.Struct:
	default:
		return t.Kind().String()
	}
	if _, known := r.structs[t.String()]; known {
		return t.String()
	}
	r.structs[t.String()] = ""
	var fields strings.Builder
	for f := range t.Fields() {
		if f.IsExported() {
			fmt.Fprintf(&fields, "  %s %s\n", f.Tag.Get("json"), r.name(f.Type))
		}
	}
	r.structs[t.String()] = fields.String()
	return t.String()
}

// A stage that is committed is not run again: its result is read back from its manifest as JSON. There a field with
// another name would be 0, and no error would say so. An embedded struct has no name in this list.
func TestResultsKeepTheirNames(t *testing.T) {
	r := &results{of: map[string]string{}, structs: map[string]string{}}
	activities.Register(r, &stage.Worker{Activities: activities.Stages(&stage.Worker{})})
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.of)) {
		fmt.Fprintf(&text, "%s: %s\n", name, r.of[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.structs)) {
		fmt.Fprintf(&text, "\n%s\n%s", name, r.structs[name])
	}
	golden.Check(t, "results.txt", text.String(), *update)
}
