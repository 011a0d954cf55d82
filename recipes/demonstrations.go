package recipes

import (
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/internal/dataset"
)

// Demonstrations are conversations that the warm start clones: of a file, or of another run.
type Demonstrations struct {
	File   string `json:"file,omitempty" optional:"true" doc:"conversations in OpenAI's chat format, JSON lines or a list: an absolute path, s3://BUCKET/KEY or https://…. Each is one question, calls with their recorded answers, and a final answer; the protocol renders them"`
	Digest string `json:"sha256,omitempty" optional:"true" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of that file, as sha256sum prints it"`
	MaxMB  int    `json:"max_mb,omitempty" default:"256" min:"1" max:"65536" doc:"most MiB of that file, which is held in memory"`
	Run    string `json:"run,omitempty" optional:"true" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"run of the same store whose trajectories are cloned, of all of its finished steps. Its environment, protocol and tools give the same tokens"`
	All    bool   `json:"all,omitempty" default:"false" doc:"clone every trajectory of that run instead of the successful ones"`
}

// demonstrationsFit checks where the demonstrations come from.
func demonstrationsFit(r *Recipe) string {
	d := r.WarmStart.Demonstrations
	switch {
	case d == nil:
		return ""
	case (d.File == "") == (d.Run == ""):
		return "must name either file or run"
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
