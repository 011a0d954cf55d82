package api

import "github.com/ropewalk/ropewalk/schema"

// JudgeInput asks for a judge's verdicts on one shard's answers.
type JudgeInput struct {
	Scope
	Shard        int        `json:"shard"`
	Trajectories schema.Ref `json:"trajectories"`
	Prompts      schema.Ref `json:"prompts"`
}

// Judged counts one shard's verdicts.
type Judged struct {
	Done
	Asked      int `json:"asked"`   // trajectories
	Prompts    int `json:"prompts"` // different prompts among them; each is one request, or more after failures
	Matches    int `json:"matches"` // trajectories
	Mismatches int `json:"mismatches"`
	// Excluded counts the trajectories that the judge gave no verdict on.
	Excluded int `json:"excluded,omitempty"`
}

// Count counts the verdicts in rows.
func (j *Judged) Count(rows []schema.JudgementRow) {
	prompts := map[string]bool{}
	for _, r := range rows {
		prompts[r.PromptDigest] = true
		switch {
		case r.Excluded != nil:
			j.Excluded++
		case r.Verdict == schema.JudgementMatch:
			j.Matches++
		default:
			j.Mismatches++
		}
	}
	j.Asked, j.Prompts = len(rows), len(prompts)
}
