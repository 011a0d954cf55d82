package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// CheckState is the progress of a check, and its final result.
type CheckState struct {
	Steps   []int           `json:"steps"`             // steps to check
	Next    int             `json:"next"`              // how many of them are checked
	Shards  int             `json:"shards"`            // shards recomputed so far
	Differs []api.Different `json:"differs,omitempty"` // in the order of the steps
	// Code is the program that checks; Codes lists the other programs that made steps of the run.
	Code  string   `json:"code"`
	Codes []string `json:"codes,omitempty"`
}

// differsShown bounds the table in the UI's details.
const differsShown = 50

// check recomputes the pure stages of all finished steps, several steps at a time.
func (r *replayStage) check(ctx workflow.Context) error {
	r.result.Check = r.in.Continued
	if r.result.Check == nil {
		r.result.Check = &CheckState{}
		r.at.enter(ctx, schema.StageReplay)
		plan, err := call[api.CheckPlan](ctx, nil, api.PrepareCheck, "find the steps that are done", r.in.Run)
		if err != nil {
			return err
		}
		r.result.Check.Steps, r.result.Check.Code = plan.Steps, plan.Code
	}
	c := r.result.Check
	for taken := 0; c.Next < len(c.Steps); {
		if taken >= checksPerHistory {
			in := r.in
			in.Continued = c
			return workflow.NewContinueAsNewError(ctx, ReplayStage, in)
		}
		r.at.enter(ctx, schema.StageReplay)
		workflow.SetCurrentDetails(ctx, r.markdown())
		some := c.Steps[c.Next:min(c.Next+sideBySide, len(c.Steps))]
		if err := r.checkSteps(ctx, some); err != nil {
			return err
		}
		taken += len(some)
		c.Next += len(some)
	}
	r.at.enter(ctx, "done")
	return nil
}

func (r *replayStage) checkSteps(ctx workflow.Context, steps []int) error {
	checked := make([]api.Checked, len(steps))
	err := each(ctx, sideBySide, len(steps), func(ctx workflow.Context, i int) (err error) {
		checked[i], err = call[api.Checked](ctx, nil, api.CheckReplay, fmt.Sprintf("step %d", steps[i]),
			api.CheckInput{Run: r.in.Run, Step: steps[i]})
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range checked {
		r.result.Check.Add(s)
	}
	return nil
}

// Add counts a step that is checked.
func (c *CheckState) Add(s api.Checked) {
	c.Shards += s.Shards
	c.Differs = append(c.Differs, s.Differs...)
	if s.Code != "" && !slices.Contains(c.Codes, s.Code) {
		c.Codes = append(c.Codes, s.Code)
	}
}

func (c *CheckState) write(b *strings.Builder) {
	fmt.Fprintf(b, "%d of %d steps, %d shards made again, %d differ. Nothing is committed.\n\n", c.Next, len(c.Steps),
		c.Shards, len(c.Differs))
	if len(c.Codes) > 0 {
		fmt.Fprintf(b, "Checked by program `%s`; the run was made by `%s`.\n\n", short(c.Code), shortAll(c.Codes))
	}
	if len(c.Differs) == 0 {
		return
	}
	b.WriteString("| step | stage | shard | now |\n|--:|:--|--:|:--|\n")
	for i, d := range c.Differs {
		if i == differsShown {
			fmt.Fprintf(b, "\nand %d more\n", len(c.Differs)-i)
			break
		}
		fmt.Fprintf(b, "| %d | %s | %s | `%s` |\n", d.Step, d.Stage, shardWord(d.Shard), d.Digest)
	}
	b.WriteString("\n")
}

func shortAll(digests []string) string {
	out := make([]string, len(digests))
	for i, d := range digests {
		out[i] = short(d)
	}
	return strings.Join(out, "`, `")
}

func shardWord(shard int) string {
	if shard < 0 {
		return "all"
	}
	return fmt.Sprint(shard)
}
