package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/tool"
)

// log is a tool whose calls, and those of the tools that share its server, are written to the log of their episode.
type log struct {
	name   string
	repeat tool.Repeat
	mu     *sync.Mutex
	lines  map[string][]string // by episode; one entry says which tool ran which call, and what it saw of the past
}

func (l log) Spec() tool.Spec {
	return tool.Spec{Name: l.name, Doc: "writes", Schema: tool.SchemaOf[entry](), Repeat: l.repeat, Stateful: true,
		Server: "log"}
}

var errPage = errors.New("the page is full")

func (l log) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	return tool.EachEpisode(ctx, calls, func(_ context.Context, c tool.Call) (tool.Result, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if strings.Contains(string(c.Arguments), "break") {
			return tool.Result{}, errPage
		}
		var past []string
		for _, ran := range c.Past {
			past = append(past, ran.Call.Tool+"="+ran.Result.Stdout)
		}
		at := c.Key.Episode()
		l.lines[at] = append(l.lines[at], fmt.Sprintf("%s ran %s after %v", l.name, c.Tool, past))
		return tool.Result{Status: tool.OK, Stdout: string(c.Arguments)}, nil
	})
}

// written is a call in the episode of a group.
func written(group, position int, name, arguments string) tool.Call {
	return tool.Call{Key: tool.Key{Label: "sample", Group: group, Call: position}, Tool: name, Name: name,
		Arguments: []byte(arguments)}
}

// Tools that share a server run an episode's calls in their order, and each call knows the ones before it, also under a
// journal, which hands the calls over one by one.
func TestToolsThatShareAServer(t *testing.T) {
	for _, repeat := range []tool.Repeat{tool.Sandboxed, tool.AtMostOnce} {
		mu, lines := &sync.Mutex{}, map[string][]string{}
		j := &memory{notes: map[string]string{}}
		box := tool.Toolbox{tool.Once(log{"read", repeat, mu, lines}, j), tool.Once(log{"write", repeat, mu, lines}, j)}
		calls := []tool.Call{written(0, 0, "write", "1"), written(1, 0, "read", "2"), written(0, 1, "read", "3"),
			written(0, 2, "write", "4")}
		out, err := box.RunEach(t.Context(), calls, nil)
		require.NoError(t, err)
		for i := range calls {
			require.NoError(t, out[i].Broken)
			require.Equal(t, string(calls[i].Arguments), out[i].Stdout)
		}
		require.Equal(t, []string{"read ran write after []", "read ran read after [write=1]",
			"read ran write after [write=1 read=3]"}, lines[calls[0].Key.Episode()])
		require.Equal(t, []string{"read ran read after []"}, lines[calls[1].Key.Episode()])
	}
}

// After a call that breaks, the state of its episode is unknown: the episode's later calls break too, and no others.
func TestCallsAfterOneThatBroke(t *testing.T) {
	l := log{"read", tool.Sandboxed, &sync.Mutex{}, map[string][]string{}}
	results, err := l.Run(t.Context(), []tool.Call{written(0, 0, "read", "break"), written(0, 1, "read", "1"),
		written(1, 0, "read", "2")})
	var broken tool.CallErrors
	require.ErrorAs(t, err, &broken)
	require.ErrorIs(t, broken[0], errPage)
	require.ErrorIs(t, broken[1], errPage)
	require.NoError(t, broken[2])
	require.Equal(t, "2", results[2].Stdout)
}
