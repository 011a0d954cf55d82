package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// tableSteps is the number of latest steps in the table of a run's details.
const tableSteps = 12

// TestRunsInTheBrowser does in Temporal's UI what a person does with runs.
func TestRunsInTheBrowser(t *testing.T) {
	longform.Need(t, "ROPEWALK_TEST_BROWSER", "test-browser")
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	p := openBrowser(t, h)
	const run = "browser"
	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	// Larger steps than the recipe's, so that the run seldom continues as new while the page is used.
	long := map[string]any{"recipe_yaml": string(text), "steps": 400,
		"set": []string{"rollout.prompts=288", "rollout.shard_groups=48"}}

	if !t.Run("start", func(t *testing.T) {
		p.startForm(t, run, workflows.TrainRunName, long)
		p.picture(t, "start")
		p.submitStart(t)
		p.shows(t, "/"+run, "Running", workflows.TrainRunName, "Task Queue cpu")
	}) {
		return
	}
	done := 0 // steps, while the run is paused
	if !t.Run("pause", func(t *testing.T) {
		eventually(t, func() bool { return h.record().heads(run) > 1 }, "two steps")
		p.update(t, run, workflows.UpdatePause, nil, "Pause before the next step; the step that runs is finished.")
		details := func() { // of the latest execution
			p.open(t, "/"+run)
			p.click(t, "user-metadata-tab")
		}
		details()
		p.askUntil(t, "the pause in the details", 20*time.Second, details,
			[]string{"Current Details", "of 400 · paused", "Paused before the next step. Send the update unpause"})
		done = h.record().heads(run)
	}) {
		return
	}
	t.Run("read the details", func(t *testing.T) {
		p.open(t, "/"+run)
		p.click(t, "user-metadata-tab")
		p.seesDetails(t, fmt.Sprintf("%s · recipe tiny · seed 1 · step %d of 400", run, done), "Warm start: success",
			"Seconds by stage:")
		rows := p.table(t, "step")
		require.Greater(t, len(rows), 2)
		require.Equal(t, []string{"step", "reward", "success"}, rows[0][:3])
		require.Equal(t, fmt.Sprint(done), rows[1][0], "the latest step comes first")
		require.Len(t, rows, 1+min(done, tableSteps), "a busy machine takes many steps before it hears of the pause")
		require.Equal(t, fmt.Sprint(max(1, done-tableSteps+1)), rows[len(rows)-1][0])
		p.picture(t, "details")
	})
	t.Run("see a step's stages", func(t *testing.T) {
		p.shows(t, "/"+url.PathEscape(workflows.StepWorkflowID(run, done)), "Completed", "Parent Workflow "+run,
			"SelectPrompts • the next step's problems", "GenerateRollouts • shard 1, turn 0", "ScoreRewards • shard 1",
			"Resample • VSPO, then RoC", "ComputeAdvantages • makes the training batch", "UpdatePolicy • ",
			"PublishPolicy • serve ")
		p.scrollTo(t, "Event History")
		p.picture(t, "step")
	})
	t.Run("change a setting and go on", func(t *testing.T) {
		p.update(t, run, workflows.UpdateSet, map[string]any{"steps": done + 1},
			"Change settings from the next step on")
		p.update(t, run, workflows.UpdateUnpause, nil, "Go on with a paused run. No argument.")
		p.shows(t, "/"+run, "Completed "+run, "Duration") // an update that is completed is on the page, too
		require.Equal(t, done+1, h.record().heads(run))
		h.run(t, "verify", run).ok(t)
	})
	t.Run("find it", func(t *testing.T) {
		p.search(t, `RunID="`+run+`" and WorkflowType!="RolloutShard"`)
		p.sees(t, " Workflows ", fmt.Sprintf("%s/step=%d", run, done+1))
		found := regexp.MustCompile(`\d+ Workflows`).FindString(p.text(t))
		var count int
		_, err := fmt.Sscanf(found, "%d Workflows", &count)
		require.NoError(t, err)
		require.Greater(t, count, done+1, "the run's steps and the executions of the run itself")
		p.picture(t, "find")
		p.saveView(t, "one run")
		p.search(t, `RunID="`+run+`" and Step=1 and Stage="update"`)
		p.sees(t, "1 Workflow", run+"/step=1")
		p.click(t, "one run") // the saved view
		p.sees(t, found)
	})
	t.Run("replay a stage", func(t *testing.T) {
		p.start(t, "browser-replay", "ReplayStage",
			map[string]any{"run_id": run, "step": 1, "from": schema.StageReward})
		p.shows(t, "/browser-replay", "Completed browser-replay", "ScoreRewards", "Resample", "ComputeAdvantages")
		p.scrollTo(t, "Event History")
		p.picture(t, "replay")
	})
	t.Run("bad input", func(t *testing.T) {
		p.start(t, "browser-bad", workflows.TrainRunName, map[string]any{"recipe": "quickstrt"})
		p.shows(t, "/browser-bad", "Failed browser-bad", api.FailBadInput, `quickstrt`)
	})
	t.Run("cancel", func(t *testing.T) {
		p.start(t, "browser-cancelled", workflows.TrainRunName, long)
		eventually(t, func() bool { return h.record().heads("browser-cancelled") > 0 }, "a step")
		p.cancel(t, "browser-cancelled")
		require.Less(t, h.record().heads("browser-cancelled"), 400)
	})
	t.Run("mend a parked run", func(t *testing.T) { parkedInTheBrowser(t, p, h) })
}

// parkedInTheBrowser damages a shard of a run that is resumed, sees which stage failed, repairs the shard and has the
// stage run again.
func parkedInTheBrowser(t *testing.T, p *page, h *home) {
	const run = "base"
	whole := h.record().outline(t, run)
	turns := h.record().manifest(t,
		schema.At(run, steps, schema.StageRollout).WithTurn(0).WithShard(1).ManifestKey()).ShardsOf(schema.Turns)
	require.Len(t, turns, 1)
	restore := h.record().flip(t, turns[0].Key)
	h.record().unfinish(t, run, schema.StageAdvantage, schema.StageUpdate, schema.StagePublish)

	p.start(t, run, workflows.TrainRunName, map[string]any{"resume": true})
	p.search(t, `RunID="`+run+`" and FailureKind="`+api.FailCorrupt+`"`)
	p.refreshUntil(t, "Running "+run, "Failed "+run+"/step=4")
	p.picture(t, "failures")
	p.open(t, "/"+run)
	p.click(t, "user-metadata-tab")
	p.seesDetails(t, "Parked at step 4: "+api.FailCorrupt, "advantage: ComputeAdvantages", turns[0].Key,
		"restore the object from a copy",
		"retry: run it again", "skip cannot be done", "abort: give the run up")
	p.picture(t, "parked")

	restore()
	p.update(t, run, workflows.UpdateRetry, map[string]any{}, "Run the failed stage again.")
	p.shows(t, "/"+run, "Completed "+run)
	require.Equal(t, whole, h.record().outline(t, run))
	h.run(t, "verify", run).ok(t)
}

// startForm fills the form "Start Workflow". It fills the editor first, because the editor
// lays out its text again when it loses the focus, and that moves the fields below. The message about the task queue,
// which appears after the server's answer, moves them too.
func (p *page) startForm(t *testing.T, id, workflow string, input map[string]any) {
	t.Helper()
	p.open(t, "")
	p.click(t, "Start Workflow")
	p.fill(t, "Data", object(t, input))
	p.fill(t, "Task Queue", workflows.QueueCPU)
	p.fill(t, "Workflow ID", id)
	p.sees(t, "Task Queue is Active")
	p.fill(t, "Workflow Type", workflow)
}

func (p *page) submitStart(t *testing.T) {
	t.Helper()
	p.click(t, "start-workflow-button")
	p.until(t, "the form to be gone", func() bool { return !strings.HasSuffix(p.at(t), "/start-workflow") })
}

func (p *page) start(t *testing.T, id, workflow string, input map[string]any) {
	t.Helper()
	p.startForm(t, id, workflow, input)
	p.submitStart(t)
}

// updateForm opens a run's page and fills "Send an Update", which must show the update's description.
func (p *page) updateForm(t *testing.T, run, update string, input map[string]any, description string) {
	t.Helper()
	// The form asks the workflow for its updates once. If a busy worker does not answer, it is opened again, and so it
	// is if the execution has ended because the run continued as a new one.
	for end := time.Now().Add(patience); ; {
		p.shows(t, "/"+run, "More Actions")
		if p.clicks(t, "More Actions", "Send an Update", "Name") && p.offers(t, update+" "+description) {
			break
		}
		require.True(t, time.Now().Before(end), "the form does not offer %q; the page says:\n%s", update, p.text(t))
	}
	p.picture(t, "update") // the last one stays
	p.click(t, update)
	if input != nil {
		p.fill(t, "Data", object(t, input))
		p.click(t, "Update ID (optional)") // leaves the editor
	}
}

// update sends an update by the form of a run's page. The page belongs to one execution of the workflow, and the run
// may have continued as a new one before the form was filled; then the page is opened again.
func (p *page) update(t *testing.T, run, update string, input map[string]any, description string) {
	t.Helper()
	const accepted, late = "Update successful", "workflow execution already completed"
	for end := time.Now().Add(patience); ; {
		p.updateForm(t, run, update, input, description)
		p.click(t, "Submit")
		text := ""
		p.until(t, fmt.Sprintf("%q on the page", accepted), func() bool {
			text = p.text(t)
			return strings.Contains(text, accepted) || strings.Contains(text, late)
		})
		if strings.Contains(text, accepted) {
			return
		}
		require.True(t, time.Now().Before(end), "every execution had ended; the page says:\n%s", text)
	}
}

// cancel cancels a run. It opens the page again if the run has continued as a new execution meanwhile.
func (p *page) cancel(t *testing.T, run string) {
	t.Helper()
	const cancelled, late = "Canceled ", "Continued as New "
	for end := time.Now().Add(patience); ; {
		p.open(t, "/"+run)
		text := ""
		if p.clicks(t, "Request Cancellation", "confirm-modal-button") {
			p.until(t, "the end of the execution", func() bool {
				text = p.text(t)
				return strings.Contains(text, cancelled+run) || strings.Contains(text, late+run)
			})
			if strings.Contains(text, cancelled+run) {
				return
			}
		}
		require.True(t, time.Now().Before(end), "every execution had ended; the page says:\n%s", text)
	}
}

// search asks the list of workflows a query, as text.
func (p *page) search(t *testing.T, query string) {
	t.Helper()
	p.open(t, "")
	p.click(t, "toggle-manual-query")
	p.fill(t, "manual-search-input", query)
	p.click(t, "Search")
	p.until(t, "the query to be asked", func() bool { return strings.Contains(p.at(t), "query=") })
}

// saveView keeps the query under a name, in this browser.
func (p *page) saveView(t *testing.T, name string) {
	t.Helper()
	p.click(t, "Save as New")
	p.fill(t, "Name", name)
	p.click(t, "Save")
	p.sees(t, "Custom Views 1 / 20", name)
}

// refreshUntil repeats the query until these texts are there, because the server finds new runs a moment later.
func (p *page) refreshUntil(t *testing.T, texts ...string) {
	t.Helper()
	p.askUntil(t, fmt.Sprintf("%q to be found", texts), time.Second, func() { p.click(t, "Search") }, texts)
}

// seesDetails waits for texts in the current details; the key R asks the workflow for fresh ones.
func (p *page) seesDetails(t *testing.T, texts ...string) {
	t.Helper()
	p.sees(t, "Current Details")
	p.askUntil(t, fmt.Sprintf("%q in the details", texts), time.Second, func() { p.press(t, "r") }, texts)
}

// shows opens a page and waits until all of these texts are on it. Now and then it opens the page again, because a page
// that asked a busy server in vain does not ask again by itself.
func (p *page) shows(t *testing.T, path string, texts ...string) {
	t.Helper()
	p.open(t, path)
	p.askUntil(t, fmt.Sprintf("%q to be on the page", texts), 20*time.Second, func() { p.open(t, path) }, texts)
}

// askUntil waits for texts and asks for fresh ones every so often.
func (p *page) askUntil(t *testing.T, what string, every time.Duration, ask func(), texts []string) {
	t.Helper()
	asked := time.Now()
	p.until(t, what, func() bool {
		text := p.text(t)
		missing := slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) })
		if missing && time.Since(asked) > every {
			ask()
			asked = time.Now()
		}
		return !missing
	})
}

// picture writes docs/ui/NAME.png if -update is given.
func (p *page) picture(t *testing.T, name string) {
	t.Helper()
	if *update {
		p.shoot(t, filepath.Join(root(), "docs", "ui", name+".png"))
	}
}

// object is a JSON object in the form that a person pastes.
func object(t *testing.T, fields map[string]any) string {
	t.Helper()
	return quoted(t, fields)
}
