package recipes

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// Demonstrations are what the warm start clones in the place of the script's: conversations of a file, another run's
// trajectories, or the form of calls alone.
type Demonstrations struct {
	File   string `json:"file,omitempty" optional:"true" doc:"conversations in OpenAI's chat format, JSON lines or a list: an absolute path, s3://BUCKET/KEY or https://…. Each is one question, calls with their recorded answers, and a final answer; the protocol renders them"`
	Digest string `json:"sha256,omitempty" optional:"true" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of that file, as sha256sum prints it"`
	MaxMB  int    `json:"max_mb,omitempty" default:"256" min:"1" max:"65536" doc:"most MiB of that file, which is held in memory"`
	Run    string `json:"run,omitempty" optional:"true" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"run of the same store whose trajectories are cloned, of all of its finished steps. Its environment, protocol and tools give the same tokens"`
	All    bool   `json:"all,omitempty" default:"false" doc:"clone every trajectory of that run instead of the successful ones"`
	Form   bool   `json:"form,omitempty" default:"false" quiet:"true" doc:"clone the form alone, as rStar2's non-reasoning cold start (rStar2 §4.1): programs about random numbers, and what they print as the answer. Calls become valid, and no task is solved. The run measures the policy before the warm start too"`
}

// Forms reports whether the warm start clones the form of calls and answers alone.
func (r *Recipe) Forms() bool {
	return r.Clones() && r.WarmStart.Demonstrations != nil && r.WarmStart.Demonstrations.Form
}

// demonstrationsFit checks where the demonstrations come from.
func demonstrationsFit(r *Recipe) string {
	d := r.WarmStart.Demonstrations
	switch {
	case d.Form && (d.File != "" || d.Run != "" || d.All || d.Digest != ""):
		return "has form, and file or run with it: name one of the three"
	case d.Form:
		return formFits(r)
	case (d.File == "") == (d.Run == ""):
		return "must name either file or run, or form"
	case d.File != "" && d.Digest == "":
		return "must give sha256, so that a warm start is known by the bytes that it is made from"
	case d.File == "" && d.Digest != "":
		return "has sha256 and no file"
	case d.Run == "" && d.All:
		return "has all and no run"
	case d.File != "" && r.Environment.Declaration().Interactive:
		return "must name a run in a recipe of " + r.Environment.Name + ": conversations of a file hold no states"
	case d.File != "" && !dataset.Remote(d.File) && !filepath.IsAbs(d.File):
		return "file must be an absolute path, because workers read it too, or begin with s3:// or https://, got " +
			strings.TrimSpace(d.File)
	}
	return ""
}

// formFits checks that the demonstrations of a form have calls to show: programs, in the recipe's prompt format.
func formFits(r *Recipe) string {
	d := r.Environment.Declaration()
	if d.Interactive || d.Mixed {
		return "form has no place in a recipe of " + r.Environment.Name + ": it shows calls of programs in answers " +
			"to questions of one environment"
	}
	p, err := r.Protocol()
	if err != nil {
		return "" // a fault of rollout.protocol
	}
	_, writes := p.Write(env.Move{Code: "print(1)"})
	if !p.Spec().Tools || !writes || !slices.Contains(r.Rollout.ToolNames(), tools.Python.Name) {
		return "form wants rollout.tools python and a rollout.protocol that calls it, such as rstar2 or hermes; got " +
			"protocol " + protocolName(p) + " and tools " + strings.Join(r.Rollout.ToolNames(), ", ")
	}
	return ""
}
