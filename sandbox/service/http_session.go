package service

import (
	"net/http"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

func (s *Service) serveOpen(w http.ResponseWriter, r *http.Request) {
	var body SessionBody
	done, err := s.body(w, r, &body, true)
	if err != nil {
		refuse(w, err)
		return
	}
	defer done()
	id, err := s.openHeld(r, body)
	if err != nil {
		refuse(w, err)
		return
	}
	respond(w, http.StatusCreated, SessionOpened{ID: id})
}

func (s *Service) openHeld(r *http.Request, body SessionBody) (string, error) {
	if s.Draining() {
		return "", rpc.ErrDraining
	}
	preset, err := sandbox.PresetOf(body.Preset)
	if err != nil {
		return "", malformed("preset", err.Error())
	}
	limits, err := body.Limits.limits(preset)
	if err != nil {
		return "", err
	}
	return s.sessions.add(r.Context(), asking(r.Context()), body.Packages, limits)
}

// serveCell runs a cell. A key and a queue life have no meaning here: a session has no queue.
func (s *Service) serveCell(w http.ResponseWriter, r *http.Request) {
	var body CallBody
	done, err := s.body(w, r, &body, true)
	if err != nil {
		refuse(w, err)
		return
	}
	defer done()
	if body.Key != "" || body.QueueLife != 0 || body.Preset != "" || body.Limits != (LimitsBody{}) {
		refuse(w,
			malformed("",
				"a cell has no key, queue_life_seconds, preset or limits: "+
					"the session has limits, and its cells run in "+
					"order"))
		return
	}
	one, err := body.request(r)
	if err != nil {
		refuse(w, err)
		return
	}
	cell := one.call
	cell.Limits = sandbox.Limits{} // the session's limits apply
	if err := cell.Validate(); err != nil {
		refuse(w, err)
		return
	}
	var result sandbox.Result
	began := time.Now()
	err = rescue.Do(func() (err error) {
		result, err = s.sessions.run(r.Context(), asking(r.Context()), r.PathValue("id"), cell)
		return err
	})
	a := answer{trace: cell.Trace, result: result, err: err}
	s.metrics.cell(asking(r.Context()), a, time.Since(began))
	s.log(cell, a)
	w.Header().Set(traceHeader, cell.Trace)
	if err != nil {
		refuse(w, err)
		return
	}
	respond(w, http.StatusOK, resultBody(a))
}

func (s *Service) serveClose(w http.ResponseWriter, r *http.Request) {
	if err := s.sessions.remove(asking(r.Context()), r.PathValue("id")); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
