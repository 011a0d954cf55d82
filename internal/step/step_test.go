package step

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

var rewrite = flag.Bool("update", false, "rewrite the golden file")

// The driver runs within workflows and activities, so it knows no context, time, goroutines or randomness.
func TestTheDriverImportsLittle(t *testing.T) {
	allowed := []string{"errors", "fmt", "slices"}
	for _, own := range []string{"schema", "schema/stages", "internal/step/api"} {
		allowed = append(allowed, "github.com/ropewalk/ropewalk/"+own)
	}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			require.Contains(t, allowed, path, f.Name())
		}
	}
}

// script is a runner that writes down what runs. Shards call tools in their first turn.
type script struct {
	lines *[]string
	depth int
}

func (s script) write(format string, args ...any) {
	*s.lines = append(*s.lines, strings.Repeat("  ", s.depth)+fmt.Sprintf(format, args...))
}

func (s script) at(a At) string {
	text := a.Stage
	if a.Shard >= 0 {
		text += fmt.Sprintf(" shard %d", a.Shard)
	}
	if a.Turn >= 0 {
		text += fmt.Sprintf(" turn %d", a.Turn)
	}
	return text
}

func (s script) Run(c Call, out api.Result) error {
	s.write("%s: %s", s.at(c.At), c.Activity)
	out.Common().Manifest = schema.Ref{Key: s.at(c.At)}
	switch out := out.(type) {
	case *api.Generated:
		out.Calls = max(0, 1-c.Turn)
	case *api.Scored:
		out.Informative = 1
	case *api.Committed:
		for _, stage := range []string{schema.StageRollout, schema.StageReward, c.Stage} {
			out.Stages = append(out.Stages, api.StageRef{Stage: stage, Ref: schema.Ref{Key: stage}})
		}
	}
	return nil
}

func (s script) Unit(u Unit) error {
	s.write("%s: group %s", s.at(u.At), u.Group)
	s.depth++
	return u.Body(s)
}

func (s script) Each(n int, f func(Runner, int) error) error {
	for i := range n {
		if err := f(s, i); err != nil {
			return err
		}
	}
	return nil
}

func (s script) Aside(f func(Runner) error) func() error {
	s.write("aside")
	s.depth++
	err := f(s)
	return func() error { return err }
}

func (script) Spent() []api.Timing { return nil }

func TestOrder(t *testing.T) {
	var lines []string
	s := script{lines: &lines}
	all := stages.Needs{Grade: true, Judge: true, Function: true, Logprobs: true, ReplayBuffer: true}
	take := func(title string, change func(*In)) {
		s.write("# %s", title)
		in := &In{Scope: api.Scope{Run: "r", Step: 1}, Plan: api.Plan{Shards: 1, MaxTurns: 5}}
		change(in)
		require.NoError(t, Take(s, in, &Out{}))
	}
	take("a plain step", func(*In) {})
	take("a step with all optional stages, whose shards record their times", func(in *In) {
		in.Plan.Needs, in.Record = all, true
	})
	take("a step in two rounds; its second shard is skipped", func(in *In) {
		in.Plan.Dynamic, in.Skip = &api.Dynamic{Target: 2, Tries: 3}, []api.ExcludedShard{{Shard: 1}}
		in.Plan.Shards = 2
	})
	take("a step that is sampled, with an evaluation alongside", func(in *In) {
		in.Sampled = &Sampled{Prompts: []schema.Ref{{Key: "prompts"}}, Shards: []api.Episodes{{}}}
		in.Evaluate = &api.EvaluateInput{}
	})
	take("a step whose prompts are selected, which selects the next one's", func(in *In) {
		in.Prompts, in.Next = &schema.Ref{Key: "prompts"}, &api.PromptsInput{}
	})
	s.write("# an import of two shards")
	_, err := Import(s, api.EpisodesInput{}, make([]api.ImportedShard, 2))
	require.NoError(t, err)
	s.write("# a replay that calls the user's function again")
	made := Replayed{}
	require.NoError(t, Replay(s, api.Scope{}, api.ReplayPrepared{Problems: schema.Ref{Key: "prompts"},
		Trajectories: []api.ShardRef{{Shard: 4}}}, []string{schema.StageReward, schema.StageResample}, &made))
	for _, m := range made.Made {
		s.write("made %s", m.Stage)
	}
	s.write("# a replay through the update, whose policy is compared with the run's own")
	in := api.ReplayPrepared{Trajectories: []api.ShardRef{{Shard: 4}},
		Update: &api.CounterfactualUpdate{Own: &api.PolicyRef{}}}
	made = Replayed{}
	require.NoError(t, Replay(s, api.Scope{}, in, []string{schema.StageResample, schema.StageLogprobs,
		schema.StageAdvantage, schema.StageUpdate}, &made))
	require.NoError(t, Measure(s, api.Scope{}, in.Update, &made))
	golden.Check(t, "order.txt", strings.Join(lines, "\n")+"\n", *rewrite)
}
