package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"
)

// socket is a session of an OpenEnv server. A goroutine reads all the time, so that the server's pings are answered
// while the policy writes.
type socket struct {
	conn    *websocket.Conn
	port    *openEnvPort
	at      *server
	asked   bool        // something was asked
	replies chan []byte // at most one, which no one has asked for before
	gone    chan struct{}
	why     error // why the reader ended; set before gone is closed
	end     context.CancelFunc
	once    sync.Once
}

func newSocket(conn *websocket.Conn, port *openEnvPort, at *server) *socket {
	ctx, end := context.WithCancel(context.Background())
	s := &socket{conn: conn, port: port, at: at, replies: make(chan []byte, 1), gone: make(chan struct{}), end: end}
	conn.SetReadLimit(int64(port.most))
	go s.read(ctx)
	return s
}

// read reads messages until the connection ends.
func (s *socket) read(ctx context.Context) {
	defer close(s.gone)
	for {
		kind, data, err := s.conn.Read(ctx)
		switch {
		case errors.Is(err, websocket.ErrMessageTooBig):
			s.why = fmt.Errorf("the OpenEnv server's message has more than %d bytes", s.port.most)
		case err != nil:
			s.why = fmt.Errorf("%w: %w", ErrLost, err)
		case kind != websocket.MessageText:
			s.why = errors.New("the OpenEnv server's message is no text")
		default:
			select {
			case s.replies <- data:
				continue
			default:
				s.why = errUnasked
			}
		}
		return
	}
}

var errUnasked = errors.New("the OpenEnv server sent a message that was not asked for")

// ask sends a message and reads its reply within the time limit.
func (s *socket) ask(ctx context.Context, kind string, data any) (Reply, error) {
	limited, cancel := context.WithTimeout(ctx, s.port.step)
	defer cancel()
	text, err := json.Marshal(map[string]any{"type": kind, "data": data})
	if err != nil {
		return Reply{}, fmt.Errorf("encode a message: %w", err)
	}
	if s.asked && len(s.replies) > 0 { // a server without room says so before it is asked
		return Reply{}, errUnasked
	}
	s.asked = true
	if err := s.conn.Write(limited, websocket.MessageText, text); err != nil && limited.Err() == nil {
		select { // it may have said why before it closed the connection
		case <-s.gone:
		case <-limited.Done():
		}
	}
	got, err := s.await(limited, kind)
	if err != nil {
		return Reply{}, err
	}
	out, err := s.port.reply(got, kind == "step")
	out.Text = s.at.secrets.Conceal(out.Text)
	return out, err
}

// await returns the next message.
func (s *socket) await(ctx context.Context, kind string) ([]byte, error) {
	select {
	case got := <-s.replies:
		return got, nil
	case <-s.gone:
	case <-ctx.Done():
		return nil, fmt.Errorf("the OpenEnv server's %s took too long: %w", kind, ctx.Err())
	}
	select {
	case got := <-s.replies:
		return got, nil
	default:
		return nil, s.why
	}
}

// Step applies an action.
func (s *socket) Step(ctx context.Context, action string) (Reply, error) {
	filled, refused := s.port.form.fill(action)
	if refused != "" {
		return Reply{Text: refused, Refused: true}, nil
	}
	got, err := s.ask(ctx, "step", filled)
	return got, s.at.hide(err)
}

// Close ends the session.
func (s *socket) Close() {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		// The session is gone in any case, so no error changes a result.
		_ = s.conn.Write(ctx, websocket.MessageText, []byte(`{"type": "close"}`))
		s.drop()
		s.at.count(-1)
	})
}

// drop closes the connection.
func (s *socket) drop() {
	_ = s.conn.CloseNow()
	s.end()
}
