package rollout

import (
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
)

// PendingNotebooks returns the calls of PendingCalls as cells, one notebook for each episode that has some, in the
// order of episodes: so the cells of all notebooks together are PendingCalls, in its order. The past of each is every
// call of earlier turns that ran. Calls that could not be read never ran, and are no cells. id names an episode's
// notebook.
func (l *Loop) PendingNotebooks(episodes []*Episode, id func(*Episode) string) []session.Notebook {
	var books []session.Notebook
	calls, refs := l.PendingCalls(episodes)
	for i, ref := range refs {
		if i == 0 || refs[i-1].Episode != ref.Episode {
			e := episodes[ref.Episode]
			books = append(books, session.Notebook{ID: id(e), Limits: l.settings.CallLimits, Past: l.past(e)})
		}
		last := &books[len(books)-1]
		calls[i].Trace = ref.Trace(episodes)
		last.Cells = append(last.Cells, calls[i])
	}
	return books
}

// past lists the episode's calls that have run.
func (l *Loop) past(e *Episode) []session.Ran {
	var ran []session.Ran
	for _, t := range e.Turns {
		for i, r := range t.Results {
			if c := t.Parsed.Calls[i]; c.Error == "" && r.Excluded == "" {
				ran = append(ran, session.Ran{Cell: l.call(c), Result: sandbox.Result{
					Status: sandbox.Status(r.Status), ExitCode: int(r.ExitCode), Stdout: r.Stdout, Stderr: r.Stderr, Value: r.Value,
				}})
			}
		}
	}
	return ran
}

// MayCall reports whether the episode may still have calls that run: if it may write another response after the
// next one. The calls of the last response allowed do not run.
func (l *Loop) MayCall(e *Episode) bool {
	return e.Finish == "" && (e.AwaitsResults() || len(e.Turns)+1 < l.settings.MaxTurns)
}
