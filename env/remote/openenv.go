package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// openEnvPort begins episodes of a server that speaks OpenEnv's protocol. A session is a WebSocket. The messages are
//
//	→ {"type": "reset", "data": {"seed": 7}}
//	→ {"type": "step", "data": {the action}}
//	→ {"type": "close"}
//	← {"type": "observation", "data": {"observation": {…}, "reward": …, "done": …}}
//	← {"type": "error", "data": {"message": …, "code": …}}
//
// Source: openenv-core 0.3.0, its env_server.
type openEnvPort struct {
	keeper[*server]
	form           form
	reset          map[string]any
	shown, success []string // fields of observations
	nullIsZero     bool
	most           int           // bytes of a message
	step           time.Duration // time limit of a reset or step
	fitted         atomic.Bool   // the form fits the server's description of actions
}

// The wait before a server that is away is tried again grows from firstPause by doubling to lastPause.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Begin opens a session and resets it. It waits for a server that is away: one that starts, or has no room.
func (p *openEnvPort) Begin(ctx context.Context, task opening) (Session, Reply, error) {
	at, err := p.running(time.Now())
	if err != nil {
		return nil, Reply{}, err
	}
	limited, cancel := context.WithTimeout(ctx, max(openTime, p.step))
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		s, first, err := p.try(limited, at, task.Seed)
		if err == nil {
			p.opened()
			return s, first, nil
		}
		if dead := at.failure(); dead != nil {
			err = dead
		} else if errors.Is(err, errAway) {
			select {
			case <-limited.Done():
				at.kill(err) // the next try waits
			case <-time.After(pause):
				continue
			}
		}
		at.count(-1)
		return nil, Reply{}, at.hide(err)
	}
}

// try opens a session once.
func (p *openEnvPort) try(ctx context.Context, at *server, seed int) (Session, Reply, error) {
	if err := p.fit(ctx, at); err != nil {
		return nil, Reply{}, err
	}
	conn, resp, err := websocket.Dial(ctx, at.session.String(), &websocket.DialOptions{
		HTTPClient: direct, HTTPHeader: at.headers, CompressionMode: websocket.CompressionDisabled,
	})
	switch {
	case errors.Is(err, errRedirects):
		return nil, Reply{}, err
	case err != nil && (resp == nil || resp.StatusCode >= http.StatusInternalServerError):
		return nil, Reply{}, fmt.Errorf("%w: %w", errAway, err)
	case err != nil:
		return nil, Reply{}, fmt.Errorf("open a session with the OpenEnv server: %w", err)
	}
	s := newSocket(conn, p, at)
	data := maps.Clone(p.reset)
	data["seed"] = seed
	first, err := s.ask(ctx, "reset", data)
	if err != nil {
		s.drop()
		return nil, first, err
	}
	return s, first, nil
}

var errRedirects = errors.New("the OpenEnv server redirects, and headers are sent to the address of the recipe alone")

// direct follows no redirect.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirects }}

// mostSchema bounds the description of a server's actions in bytes.
const mostSchema = 1 << 20

// fit compares the recipe's action with the server's description of actions, once. A server may describe none.
func (p *openEnvPort) fit(ctx context.Context, at *server) error {
	if p.fitted.Load() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, p.step)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, at.schema.String(), nil)
	if err != nil {
		return fmt.Errorf("ask the OpenEnv server for its actions: %w", err)
	}
	req.Header = at.headers.Clone()
	resp, err := direct.Do(req)
	if errors.Is(err, errRedirects) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%w: it answers with status %d", errAway, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		p.fitted.Store(true)
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostSchema+1))
	if err != nil {
		return fmt.Errorf("%w: read its description of actions: %w", errAway, err)
	}
	if len(text) > mostSchema {
		return fmt.Errorf("the OpenEnv server's description of actions has more than %d bytes", mostSchema)
	}
	var d struct {
		Action *actionSchema `json:"action"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("read the OpenEnv server's description of actions: %w", badinput.JSON(err))
	}
	if err := p.form.fits(d.Action); err != nil {
		return err
	}
	p.fitted.Store(true)
	return nil
}

// hidden is an error whose text holds no secret.
type hidden struct {
	text string
	lost bool
}

// Error returns the text without secrets.
func (h hidden) Error() string { return h.text }

// Is reports whether the error is ErrLost.
func (h hidden) Is(target error) bool { return h.lost && target == ErrLost }

// hide removes secrets from an error.
func (s *server) hide(err error) error {
	if err == nil {
		return nil
	}
	return hidden{s.secrets.Conceal(err.Error()), errors.Is(err, ErrLost)}
}
