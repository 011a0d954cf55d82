package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// scoringModule notes each call, and raises for the answers that the file next to it names.
const scoringModule = `
import pathlib
here = pathlib.Path(__file__).parent

def score(trajectory):
    with open(here / "log", "a") as log:
        log.write(trajectory["answer"] + "\n")
    if trajectory["answer"] in (here / "broken").read_text().split():
        raise ValueError("no such answer")
    return len(trajectory["text"]) / 1000, trajectory["answer"] == "x+1"
`

// scorerBench is a step of unequal trajectories with a user's reward function.
type scorerBench struct {
	*stepBench
	engine *unequal
	folder string
}

// scorers makes a bench; broken are the answers that the function has no result for.
func scorers(t *testing.T, questions, folder string, broken ...string) *scorerBench {
	t.Helper()
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "scoring.py"), []byte(scoringModule), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "broken"), []byte(strings.Join(broken, " ")), 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "log")))
	b := &scorerBench{engine: &unequal{tok: mathTokens(t), invariant: true}, folder: folder}
	b.stepBench = mathStep(t, b.engine, &printer{nth: -1}, questions,
		fmt.Sprintf("reward={name: python, module: 'scoring:score', path: %q, kwargs: '{}'}", folder))
	return b
}

// asked returns the answers that the function was called with, in order.
func (b *scorerBench) asked() []string {
	text, err := os.ReadFile(filepath.Join(b.folder, "log"))
	if !os.IsNotExist(err) {
		require.NoError(b.t, err)
	}
	return strings.Fields(string(text))
}

func (b *scorerBench) run() (api.Episodes, error) {
	return do(b.stepBench, episodes.RunEpisodes{Worker: b.deps}.Execute,
		api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 20,
			Needs: stages.Needs{Function: true}})
}

// staged takes the shard to its rewards by the activities of mode staged.
func (b *scorerBench) staged() (called, scored schema.Ref, err error) {
	b.t.Helper()
	turns := &turnsBench{stepBench: b.stepBench}
	assembled := turns.shard(0, func() {})
	c, err := do(b.stepBench, verdict.CallFunction{Worker: b.deps}.Execute, api.VerdictInput{Scope: b.scope,
		Trajectories: assembled, Prompts: b.prompts})
	if err != nil {
		return called, scored, err
	}
	s, err := do(b.stepBench, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope,
		Trajectories: assembled, Verdicts: []schema.Ref{c.Manifest}})
	return c.Manifest, s.Manifest, err
}

// patient waits until something has happened, and gives up after a while.
func patient(ctx context.Context, happened func() bool) error {
	for end := time.Now().Add(5 * time.Minute); !happened() && time.Now().Before(end); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// The function is called with episodes that end early before the others have their last turn, which waits here for
// that. The stages commit what they commit in mode staged, and no trajectory is scored twice.
func TestAFunctionIsCalledWhileOthersGenerate(t *testing.T) {
	questions, folder := sums(t), t.TempDir()
	plain := scorers(t, questions, folder)
	called, scored, err := plain.staged()
	require.NoError(t, err)
	want := plain.asked()

	b := scorers(t, questions, folder)
	b.engine.last = func(ctx context.Context) error {
		return patient(ctx, func() bool { return len(b.asked()) > 0 })
	}
	out, err := b.run()
	require.NoError(t, err)
	require.Equal(t, scored, out.Scored.Manifest) // it names the results by their digest
	m, err := b.deps.Record.Read(t.Context(), out.Scored.Manifest)
	require.NoError(t, err)
	require.Contains(t, m.Inputs, called)
	got := b.asked()
	require.ElementsMatch(t, want, got)
	var began, ended int64
	for _, x := range out.Timings {
		switch x.Stage {
		case schema.StageFunction:
			began = x.Start
		case schema.StageRollout:
			ended = max(ended, x.End)
		}
	}
	require.Less(t, began, ended, "the stage's time is that of its work")
}

// A trajectory whose call breaks is called with again by the stage, which decides as in mode staged.
func TestTheStageDecidesAboutTrajectoriesThatBreakAFunction(t *testing.T) {
	questions, folder := sums(t), t.TempDir()
	for name, broken := range map[string][]string{
		"early answers": early, "late answers": late, "one of each": {"x+1", "x+4"},
		"all": slices.Concat(early, late),
	} {
		t.Run(name, func(t *testing.T) {
			plain := scorers(t, questions, folder, broken...)
			_, scored, want := plain.staged()
			b := scorers(t, questions, folder, broken...)
			out, err := b.run()
			if name == "all" {
				require.ErrorContains(t, want, "gave no result for 8 trajectories")
				require.ErrorContains(t, err, "gave no result for 8 trajectories")
				require.Equal(t, api.FailedPart{Stage: schema.StageFunction, Turn: -1, Activity: api.CallFunction},
					partOf(t, err))
				return
			}
			require.NoError(t, want)
			require.NoError(t, err)
			require.Equal(t, scored, out.Scored.Manifest)
		})
	}
}

// A worker dies before each of the shard's commits in turn. The last attempt ends with the rows of an undisturbed one,
// and calls the function no more once its results are committed.
func TestAFunctionIsCalledAfterKills(t *testing.T) {
	questions, folder := sums(t), t.TempDir()
	plain := scorers(t, questions, folder)
	_, scored, err := plain.staged()
	require.NoError(t, err)
	b := scorers(t, questions, folder)
	objects := b.deps.Store
	on := func(rules ...faults.Rule) {
		deps, err := New(stage.Options{Store: faults.New(objects, rules...), Trainer: b.engine, Rollout: b.engine,
			Sandbox: &printer{nth: -1}, Tier: sandbox.TierFull, Code: b.deps.Code, Scratch: t.TempDir()})
		require.NoError(t, err)
		published(deps, b.policy.Digest)
		b.deps = deps
	}
	for _, place := range []string{"rollout/turn=0", "rollout/turn=2", "assemble", "function", "reward"} {
		on(faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place})
		_, err := b.run()
		require.ErrorContains(t, err, faults.ErrInjected.Error(), place)
	}
	before := b.asked()
	on()
	out, err := b.run()
	require.NoError(t, err)
	require.Equal(t, scored, out.Scored.Manifest)
	require.Equal(t, before, b.asked())
}
