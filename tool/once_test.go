package tool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tooltest"
	"github.com/ropewalk/ropewalk/tool"
)

// ledger is a remote tool with effects: each execution adds a line. It fails as its fields say.
type ledger struct {
	mu    sync.Mutex
	lines map[string]int // executions, by key
	kill  func()         // runs after an execution, before its result is known
	down  bool           // the ledger cannot be reached
}

type entry struct {
	Text string `json:"text" doc:"the line to add"`
}

func (*ledger) Spec() tool.Spec {
	return tool.Spec{Name: "ledger", Doc: "adds a line to a ledger", Schema: tool.SchemaOf[entry](),
		Repeat: tool.AtMostOnce}
}

var errLine = errors.New("the line was cut")

func (l *ledger) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.Each(ctx, calls, func(ctx context.Context, c tool.Call, given entry) (tool.Result, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down {
			return tool.Result{}, fmt.Errorf("%w: connection refused", tool.ErrNotRun)
		}
		l.lines[c.Key.String()]++
		if l.kill != nil {
			l.kill()
		}
		if given.Text == "break" {
			return tool.Result{}, errLine
		}
		return tool.Result{Status: tool.OK, Stdout: fmt.Sprintf("%s is line %d", given.Text, len(l.lines)),
			Timing: tool.Timing{Wall: 1}}, ctx.Err()
	})
}

// memory is a journal in memory.
type memory struct {
	mu    sync.Mutex
	notes map[string]string
	fails string // name of the notes that cannot be put
}

var errStore = errors.New("store is full")

func (m *memory) PutIfAbsent(_ context.Context, k tool.Key, name string, note []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.fails {
		return false, errStore
	}
	at := k.String() + " " + name
	if there, ok := m.notes[at]; ok && there != string(note) {
		return false, nil // as a store does, it takes equal bytes for its own
	}
	m.notes[at] = string(note)
	return true, nil
}

func (m *memory) Get(_ context.Context, k tool.Key, name string) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	note, ok := m.notes[k.String()+" "+name]
	return []byte(note), ok, nil
}

func newLedger() (*ledger, *memory, tool.Tool) {
	l, m := &ledger{lines: map[string]int{}}, &memory{notes: map[string]string{}}
	return l, m, tool.Once(l, m)
}

// entries are calls of n episodes.
func entries(n int) []tool.Call {
	calls := make([]tool.Call, n)
	for i := range calls {
		calls[i] = tool.Call{Key: tool.Key{Scope: tool.Scope{Run: "r"}, Label: "sample", Step: 1, Sample: i},
			Tool: "ledger", Name: "ledger", Arguments: []byte(fmt.Sprintf(`{"text": "line %d"}`, i))}
	}
	return calls
}

func (l *ledger) once(t *testing.T, n int) {
	t.Helper()
	require.Len(t, l.lines, n)
	for key, times := range l.lines {
		require.Equal(t, 1, times, "call %s ran %d times", key, times)
	}
}

func TestAToolUnderAJournalConforms(t *testing.T) {
	_, _, once := newLedger()
	l, _, broken := newLedger()
	l.down = true
	tooltest.Run(t, tooltest.Subject{Tool: once, Broken: broken, Breaking: `{"text": "break"}`,
		Good: []string{`{"text": "a"}`, `{"text": ""}`}})
}

func TestCallsWithAResultAreNotRunAgain(t *testing.T) {
	l, _, once := newLedger()
	calls := entries(40)
	first, err := once.Run(t.Context(), calls)
	require.NoError(t, err)
	second, err := once.Run(t.Context(), calls)
	require.NoError(t, err)
	for i := range first {
		require.Equal(t, first[i].Untimed(), second[i])
	}
	l.once(t, 40)
}

// The worker dies after some calls have run: their outcome is unknown from then on, and the calls after them run.
func TestACallThatWasBegunIsNotRunAgain(t *testing.T) {
	l, _, once := newLedger()
	calls := entries(3)
	ctx, kill := context.WithCancel(t.Context())
	l.kill = kill
	_, err := once.Run(ctx, calls[:1])
	require.ErrorIs(t, err, context.Canceled)
	l.kill = nil
	results, err := once.Run(t.Context(), calls)
	var broken tool.CallErrors
	require.ErrorAs(t, err, &broken)
	require.ErrorIs(t, broken[0], tool.ErrUnknownOutcome)
	require.NoError(t, errors.Join(broken[1:]...))
	require.Equal(t, tool.OK, results[2].Status)
	l.once(t, 3)
}

func TestTwoAttemptsAtOnceRunEachCallOnce(t *testing.T) {
	l, _, once := newLedger()
	calls := entries(64)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			_, err := once.Run(t.Context(), calls)
			if err != nil && !errors.Is(err, tool.ErrUnknownOutcome) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	l.once(t, 64)
}

// A call that was certainly not run is made by the next attempt.
func TestACallThatWasNotRunIsMadeLater(t *testing.T) {
	l, _, once := newLedger()
	calls := entries(3)
	l.down = true
	for range 2 {
		_, err := once.Run(t.Context(), calls)
		require.ErrorIs(t, err, tool.ErrNotRun)
		require.False(t, errors.As(err, new(tool.CallErrors)), "the tool is to blame")
	}
	l.down = false
	results, err := once.Run(t.Context(), calls)
	require.NoError(t, err)
	require.Equal(t, "line 2", results[2].Stdout[:6])
	l.once(t, 3)
}

func TestABrokenJournalBreaksTheBatchAndNeverRunsACallTwice(t *testing.T) {
	for _, fails := range []string{"begun-0", "ended-0"} {
		l, m, once := newLedger()
		calls := entries(2)
		m.fails = fails
		_, err := once.Run(t.Context(), calls)
		require.ErrorIs(t, err, errStore)
		require.False(t, errors.As(err, new(tool.CallErrors)), "no call is to blame")
		m.fails = ""
		_, err = once.Run(t.Context(), calls)
		if fails == "begun-0" {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, tool.ErrUnknownOutcome)
		}
		l.once(t, 2)
	}
}

// Another call in the place of an earlier one does not get that call's result.
func TestAnotherCallWithTheSameKey(t *testing.T) {
	l, m, once := newLedger()
	calls := entries(1)
	_, err := once.Run(t.Context(), calls)
	require.NoError(t, err)
	calls[0].Arguments = []byte(`{"text": "another"}`)
	_, err = once.Run(t.Context(), calls)
	require.ErrorIs(t, err, tool.ErrUnknownOutcome)
	require.ErrorContains(t, err, "made another call in its place")
	l.once(t, 1)

	m.notes[calls[0].Key.String()+" ended-0"] = `{"call": "`
	_, err = once.Run(t.Context(), calls)
	require.ErrorContains(t, err, "is damaged")
}

func TestOnceLeavesOtherToolsAlone(t *testing.T) {
	_, m, _ := newLedger()
	require.Equal(t, tool.Tool(pure{}), tool.Once(pure{}, m))
}

// pure is a tool without effects.
type pure struct{}

func (pure) Spec() tool.Spec { return tool.Spec{Name: "pure", Repeat: tool.Pure} }

func (pure) Run(_ context.Context, calls []tool.Call) ([]tool.Result, error) {
	return make([]tool.Result, len(calls)), nil
}
