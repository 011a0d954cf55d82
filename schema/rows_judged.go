package schema

import "strings"

// The verdicts of a judge.
const (
	JudgementMatch    = "match"
	JudgementMismatch = "mismatch"
)

// JudgementRow is what a language model judged of one trajectory's answer (table judgements), where the recipe asks a
// judge and the reward depends on it. Other trajectories have no row. Rows with the same prompt share one reply.
type JudgementRow struct {
	GroupID      string  `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string  `parquet:"trajectory_id" doc:"the trajectory whose answer was judged"`
	Criterion    string  `parquet:"criterion,dict" doc:"what the judge was asked: grounded (the answer states only what the reference supports) or matching (it means the same)"`
	Answer       string  `parquet:"answer,dict" doc:"the answer as it was judged"`
	Gold         string  `parquet:"gold,dict" doc:"the correct answer, as in trajectories"`
	PromptDigest string  `parquet:"prompt_digest,dict" doc:"SHA-256 of the messages that the judge was sent, as JSON"`
	Model        string  `parquet:"model,dict" doc:"the model that was asked"`
	AnsweredBy   string  `parquet:"answered_by,dict" doc:"the model's name in the server's reply; empty if the server names none"`
	Reply        string  `parquet:"reply,dict" doc:"the text that the model wrote, or its last text if none could be read"`
	Attempts     int32   `parquet:"attempts" doc:"requests until the reply"`
	Verdict      string  `parquet:"verdict,dict" doc:"match or mismatch; empty if excluded"`
	Excluded     *string `parquet:"excluded,optional" doc:"why there is no verdict, in one line; null if there is one"`
}

// EvaluationJudgementRow is what a judge said of an episode on a held-out problem (table evaluation_judgements).
type EvaluationJudgementRow JudgementRow

// Validate implements Row.
func (r JudgementRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.oneOf("criterion", r.Criterion, "grounded", "matching")
	c.present("answer", r.Answer)
	if !validDigest(r.PromptDigest) {
		c.fail("prompt_digest", "want the digest of the judge's messages, got %q", r.PromptDigest)
	}
	c.present("model", r.Model)
	c.count("attempts", int64(r.Attempts))
	c.line("excluded", r.Excluded)
	if r.Excluded != nil {
		c.empty("verdict", r.Verdict, "if there is no verdict")
		return c.err
	}
	c.oneOf("verdict", r.Verdict, JudgementMatch, JudgementMismatch)
	if !strings.Contains(strings.ToLower(r.Reply), r.Verdict) {
		c.fail("reply", "must hold the verdict %s, got %q", r.Verdict, r.Reply)
	}
	return c.err
}

// Validate implements Row.
func (r EvaluationJudgementRow) Validate() error { return JudgementRow(r).Validate() }

// Position implements Row.
func (r JudgementRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }

// Position implements Row.
func (r EvaluationJudgementRow) Position() Position { return JudgementRow(r).Position() }
