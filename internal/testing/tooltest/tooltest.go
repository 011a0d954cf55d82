// Package tooltest is the conformance suite of tools.
package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/tool"
)

// Subject is a tool under test.
type Subject struct {
	Tool tool.Tool
	// Good are arguments of calls that get a verdict other than BadArguments: at least two that differ.
	Good []string
	// Breaking are arguments with which a call breaks although the tool works; "" if there are none.
	Breaking string
	// Broken is the tool when it cannot run any call; nil if that cannot be arranged.
	Broken tool.Tool
}

// soon is how long a tool may take to notice that its context has ended.
const soon = 30 * time.Second

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Run holds a tool to the contract of tool.Tool.
func Run(t *testing.T, s Subject) {
	t.Helper()
	spec := s.Tool.Spec()
	t.Run("spec", func(t *testing.T) { checkSpec(t, s) })
	schema := golden.Compile(t, "tool.json", spec.Schema)
	t.Run("arguments", func(t *testing.T) { checkArguments(t, s, schema) })
	t.Run("batches", func(t *testing.T) { checkBatches(t, s) })
	t.Run("repeated calls", func(t *testing.T) { checkRepeats(t, s) })
	t.Run("concurrent batches", func(t *testing.T) { checkConcurrent(t, s) })
	t.Run("cancelled", func(t *testing.T) { checkCancelled(t, s) })
	t.Run("breakage", func(t *testing.T) { checkBreakage(t, s) })
}

func checkSpec(t *testing.T, s Subject) {
	spec := s.Tool.Spec()
	require.Equal(t, spec, s.Tool.Spec(), "a second Spec differs")
	names := append([]string{spec.Name}, spec.Aliases...)
	for i, name := range names {
		require.Regexp(t, nameForm, name)
		require.Equal(t, i, slices.Index(names, name), "the name %s occurs twice", name)
		require.True(t, spec.Answers(name))
	}
	require.NotEmpty(t, spec.Doc)
	require.NotContains(t, spec.Doc, "\n")
	require.False(t, strings.HasSuffix(spec.Doc, "."), "the one line of documentation has no full stop")
	require.Contains(t, tool.Repeats(), spec.Repeat)
	var schema struct{ Type string }
	require.NoError(t, json.Unmarshal(spec.Schema, &schema))
	require.Equal(t, "object", schema.Type)
	require.GreaterOrEqual(t, len(s.Good), 2, "the suite needs calls that differ")
}

// calls returns calls with these arguments, each of an episode of its own. from numbers the first.
func calls(s tool.Spec, from int, arguments ...string) []tool.Call {
	out := make([]tool.Call, len(arguments))
	for i, a := range arguments {
		out[i] = tool.Call{Key: tool.Key{Scope: tool.Scope{Run: "tooltest"}, Label: "sample", Step: 1, Group: from + i},
			Tool: s.Name, Name: s.Name, Arguments: json.RawMessage(a), Trace: fmt.Sprint("tooltest/", from+i)}
	}
	return out
}

// next numbers the calls of all checks, so that no two have the same key unless a check wants that.
var next atomic.Int64

func fresh(s tool.Spec, arguments ...string) []tool.Call {
	return calls(s, int(next.Add(int64(len(arguments))))-len(arguments), arguments...)
}

// results runs a batch that does not break.
func results(t *testing.T, of tool.Tool, batch []tool.Call) []tool.Result {
	t.Helper()
	got, err := of.Run(t.Context(), batch)
	require.NoError(t, err)
	require.Len(t, got, len(batch), "one result for each call")
	for i, r := range got {
		require.True(t, r.Status.IsVerdict(), "status %q of call %s is no verdict", r.Status, batch[i].Arguments)
	}
	return got
}

// checkArguments compares the schema and Run on the good arguments and on mutations of them.
func checkArguments(t *testing.T, s Subject, schema *jsonschema.Schema) {
	spec := s.Tool.Spec()
	for _, good := range s.Good {
		require.True(t, accepts(t, schema, good), "the schema rejects the good arguments %s", good)
		require.NotEqual(t, tool.BadArguments, results(t, s.Tool, fresh(spec, good))[0].Status, good)
	}
	rejected := 0
	for _, m := range mutations(t, spec, s.Good) {
		accepted := accepts(t, schema, m.arguments)
		r := results(t, s.Tool, fresh(spec, m.arguments))[0]
		require.Equal(t, !accepted, r.Status == tool.BadArguments,
			"the schema accepts %s: %t, but the verdict is %s (%s)", m.arguments, accepted, r.Status, r.Stderr)
		if accepted {
			continue
		}
		rejected++
		require.NotEmpty(t, r.Stderr, "the verdict on %s says nothing", m.arguments)
		require.Contains(t, r.Stderr, m.argument, "the verdict on %s does not name the argument", m.arguments)
		require.Empty(t, r.Stdout)
	}
	require.Positive(t, rejected)
}

func accepts(t *testing.T, schema *jsonschema.Schema, arguments string) bool {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
	return err == nil && schema.Validate(doc) == nil
}

// mutation is a changed object of arguments. argument is what a verdict that rejects it names.
type mutation struct{ argument, arguments string }

// mutations changes good arguments in one place each.
func mutations(t *testing.T, spec tool.Spec, good []string) []mutation {
	t.Helper()
	var schema struct {
		Properties map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(spec.Schema, &schema))
	var out []mutation
	for _, other := range []string{`null`, `[]`, `"text"`, `1`, `{`, ``} {
		out = append(out, mutation{"arguments", other})
	}
	change := func(base map[string]json.RawMessage, name string, value string) {
		changed := maps.Clone(base)
		if changed[name] = json.RawMessage(value); value == "" {
			delete(changed, name)
		}
		text, err := json.Marshal(changed)
		require.NoError(t, err)
		out = append(out, mutation{name, string(text)})
	}
	for _, g := range good {
		var base map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(g), &base))
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			for _, value := range []string{``, `null`, `true`, `1`, `1.5`, `-1`, `1e300`, `[]`, `[1]`, `["a", null]`,
				`{}`, `"text"`, `""`} {
				change(base, name, value)
			}
		}
		change(base, "no_such_argument", `1`)
	}
	return out
}

// mixed returns good arguments with a rejected call among them, and the index of that call.
func mixed(s Subject) (arguments []string, bad int) {
	for len(arguments) < 40 {
		arguments = append(arguments, s.Good...)
	}
	bad = len(arguments) / 2
	return slices.Insert(arguments, bad, `[]`), bad
}

func checkBatches(t *testing.T, s Subject) {
	spec := s.Tool.Spec()
	for _, empty := range [][]tool.Call{nil, {}} {
		got, err := s.Tool.Run(t.Context(), empty)
		require.NoError(t, err, "an empty batch")
		require.Empty(t, got)
	}
	arguments, bad := mixed(s)
	whole := results(t, s.Tool, fresh(spec, arguments...))
	for i, a := range arguments {
		require.Equal(t, i == bad, whole[i].Status == tool.BadArguments, "call %d of the batch", i)
		single := results(t, s.Tool, fresh(spec, a))[0]
		if spec.Repeat == tool.Pure {
			require.Equal(t, single.Untimed(), whole[i].Untimed(), "call %d depends on its batch", i)
		}
		require.Equal(t, single.Status, whole[i].Status, "the status of call %d depends on its batch", i)
	}
}

// checkRepeats makes the same calls twice, with the same keys.
func checkRepeats(t *testing.T, s Subject) {
	spec := s.Tool.Spec()
	batch := fresh(spec, s.Good...)
	first := results(t, s.Tool, batch)
	if spec.Stateful {
		for _, c := range batch { // the second calls begin their episodes again
			require.NoError(t, tool.Toolbox{s.Tool}.End(t.Context(), c.Key.Episode()))
		}
	}
	second := results(t, s.Tool, batch)
	for i := range first {
		if spec.Repeat == tool.Sandboxed {
			require.Equal(t, first[i].Status, second[i].Status, "call %s", batch[i].Arguments)
			continue
		}
		require.Equal(t, first[i].Untimed(), second[i].Untimed(), "the same call %s has another result",
			batch[i].Arguments)
	}
}

func checkConcurrent(t *testing.T, s Subject) {
	spec := s.Tool.Spec()
	want := results(t, s.Tool, fresh(spec, s.Good...))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := s.Tool.Run(t.Context(), fresh(spec, s.Good...))
			if err != nil || len(got) != len(want) {
				t.Errorf("a concurrent batch: %d results, %v", len(got), err)
				return
			}
			for i := range got {
				if got[i].Status != want[i].Status {
					t.Errorf("call %s: status %s in a concurrent batch, want %s", s.Good[i], got[i].Status,
						want[i].Status)
				}
			}
		})
	}
	group.Wait()
}

func checkCancelled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	started := time.Now()
	_, err := s.Tool.Run(ctx, fresh(s.Tool.Spec(), s.Good...))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.As(err, new(tool.CallErrors)), "no call is to blame for a context that has ended")
	require.Less(t, time.Since(started), soon)
}

func checkBreakage(t *testing.T, s Subject) {
	spec := s.Tool.Spec()
	if s.Breaking != "" {
		arguments, bad := mixed(s)
		broken := bad + 1
		arguments = slices.Insert(arguments, broken, s.Breaking)
		got, err := s.Tool.Run(t.Context(), fresh(spec, arguments...))
		var each tool.CallErrors
		require.ErrorAs(t, err, &each, "breakage of one call is an error of that call")
		require.Len(t, each, len(arguments))
		require.Len(t, got, len(arguments))
		for i := range arguments {
			require.Equal(t, i == broken, each[i] != nil, "call %d: %v", i, each[i])
			require.Equal(t, i == bad, got[i].Status == tool.BadArguments, "call %d", i)
			require.Equal(t, i != broken, got[i].Status.IsVerdict(), "call %d has the status %q", i, got[i].Status)
		}
	}
	if s.Broken != nil {
		_, err := s.Broken.Run(t.Context(), fresh(spec, s.Good...))
		require.Error(t, err)
		require.False(t, errors.As(err, new(tool.CallErrors)), "no call is to blame for a broken tool: %v", err)
	}
}
