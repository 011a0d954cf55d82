package export

import (
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// table writes one Parquet file.
type table struct {
	w       *schema.EpisodeWriter
	opening string // see messages
}

func (t table) write(run string, step int, episodes []analysis.Episode) error {
	rows := make([]schema.EpisodeRow, len(episodes))
	for i, e := range episodes {
		var err error
		if rows[i], err = episodeRow(run, step, e, t.opening); err != nil {
			return err
		}
	}
	return t.w.Write(rows)
}

func (t table) close() error { return t.w.Close() }

func episodeRow(run string, step int, e analysis.Episode, opening string) (schema.EpisodeRow, error) {
	t, r, s := e.Trajectory, e.Reward, e.Selection
	list, err := messages(e, opening)
	if err != nil {
		return schema.EpisodeRow{}, err
	}
	text, err := encode(list)
	if err != nil {
		return schema.EpisodeRow{}, err
	}
	row := schema.EpisodeRow{
		Run: run, Step: int32(step), GroupID: t.GroupID, TrajectoryID: t.TrajectoryID, ProblemID: t.ProblemID,
		Level:  t.Level,
		Source: t.Source, Problem: e.Prompt.Problem, Answer: t.Gold, FinalAnswer: t.FinalAnswer, HasAnswer: t.HasAnswer,
		Finish: t.Finish,
		Reward: r.Reward, Success: r.Success, Verdict: r.Verdict, Kept: s.Kept, Reason: s.Reason, Count: s.Count,
		Weight:    s.Weight,
		Advantage: e.Advantage, TurnCount: t.Turns, ToolCallCount: t.ToolCalls, ToolErrorCount: t.ToolErrors,
		Tokens:         t.Tokens,
		ResponseTokens: t.ResponseTokens, PolicyVersion: t.PolicyVersion, Messages: string(text), Item: t.Item,
	}
	unknown := false // a turn's log-probabilities are null
	for _, turn := range e.Turns {
		row.Turns = append(row.Turns, episodeTurn(turn, e.CallsOf(turn.Turn)))
		row.TokenIDs = append(row.TokenIDs, turn.TokenIDs...)
		row.LossMask = append(row.LossMask, turn.LossMask...)
		row.LogProbs = append(row.LogProbs, turn.LogProbs...)
		row.Entropies = append(row.Entropies, turn.Entropies...)
		unknown = unknown || turn.LogProbs == nil
	}
	if unknown {
		row.LogProbs, row.Entropies = nil, nil
	}
	return row, nil
}

func episodeTurn(t schema.TurnRow, calls []schema.ToolCallRow) schema.EpisodeTurn {
	out := schema.EpisodeTurn{
		Turn: t.Turn, Observation: t.Observation, Response: t.Response, Finish: t.Finish,
		ContextTokens: t.ContextTokens, Tokens: int32(len(t.TokenIDs)), Summary: t.IsSummary(),
	}
	for _, c := range calls {
		out.ToolCalls = append(out.ToolCalls, schema.EpisodeCall{
			Name: c.Name, Arguments: c.Arguments, Code: c.Code, Stdin: c.Stdin, Status: c.Status, ExitCode: c.ExitCode,
			Stdout: c.Stdout, Stderr: c.Stderr, Result: c.Response,
		})
	}
	return out
}
