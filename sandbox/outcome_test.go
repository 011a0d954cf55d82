package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

var errBreak = errors.New("the zygote is gone")

// fragile has no verdict on the codes in breaks, as often as they say. Its whole batches fail or panic as often as
// whole and panics say.
type fragile struct {
	breaks        map[string]int
	whole, panics int
	batches       [][]string
}

func (f *fragile) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	var codes []string
	for _, c := range calls {
		codes = append(codes, c.Code)
	}
	f.batches = append(f.batches, codes)
	if f.panics--; f.panics >= 0 {
		panic("no verdict for anyone")
	}
	if f.whole--; f.whole >= 0 {
		return nil, errBreak
	}
	results, broken := make([]sandbox.Result, len(calls)), make(sandbox.CallErrors, len(calls))
	for i, c := range calls {
		if left := f.breaks[c.Code]; left > 0 {
			f.breaks[c.Code] = left - 1
			broken[i] = fmt.Errorf("call %s: %w", c.Code, errBreak)
			continue
		}
		results[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: c.Code}
	}
	if len(broken.Unwrap()) > 0 {
		return results, broken
	}
	return results, nil
}

func (f *fragile) Close() error { return nil }

func TestRunEach(t *testing.T) {
	const always = 1 << 30
	for _, tt := range []struct {
		name    string
		under   fragile
		codes   []string
		broken  []int // of the outcomes
		fails   bool
		batches int
	}{
		{"nothing breaks", fragile{}, []string{"a", "b"}, nil, false, 1},
		{"no calls", fragile{}, nil, nil, false, 1},
		{"one breaks once", fragile{breaks: map[string]int{"b": 1}}, []string{"a", "b", "c"}, nil, false, 2},
		{"one breaks always", fragile{breaks: map[string]int{"b": always}}, []string{"a", "b", "c"}, []int{1}, false,
			3},
		{"one breaks always, and then all", fragile{breaks: map[string]int{"b": always, "1": always}},
			[]string{"a", "b", "c"}, nil, true, 3},
		{"two break always", fragile{breaks: map[string]int{"a": always, "c": always}}, []string{"a", "b", "c"},
			[]int{0, 2}, false, 4},
		{"all break", fragile{breaks: map[string]int{"a": always, "b": always}}, []string{"a", "b"}, nil, true, 3},
		{"all break once", fragile{breaks: map[string]int{"a": 1, "b": 1}}, []string{"a", "b"}, nil, false, 3},
		{"the only one breaks", fragile{breaks: map[string]int{"a": always}}, []string{"a"}, []int{0}, false, 3},
		{"the only one breaks, as does all", fragile{breaks: map[string]int{"a": always, "1": always}}, []string{"a"},
			nil, true, 3},
		{"the batch fails once", fragile{whole: 1}, []string{"a", "b"}, nil, false, 2},
		{"the batch fails", fragile{whole: always}, []string{"a", "b"}, nil, true, 2},
		{"the batch panics once", fragile{panics: 1}, []string{"a", "b"}, nil, false, 2},
		{"the batch panics", fragile{panics: always}, []string{"a", "b"}, nil, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls []sandbox.Call
			for _, c := range tt.codes {
				calls = append(calls, sandbox.Call{Code: c})
			}
			outcomes, err := sandbox.RunEach(t.Context(), &tt.under, calls)
			require.Len(t, tt.under.batches, tt.batches)
			if tt.fails {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Len(t, outcomes, len(calls))
			for i, o := range outcomes {
				if slices.Contains(tt.broken, i) {
					require.ErrorIs(t, o.Broken, errBreak)
					continue
				}
				require.NoError(t, o.Broken)
				require.Equal(t, tt.codes[i], o.Stdout, "each verdict belongs to its own call")
			}
		})
	}
}

func TestRunEachObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	under := &fragile{whole: 1}
	_, err := sandbox.RunEach(ctx, under, []sandbox.Call{{Code: "a"}})
	require.ErrorIs(t, err, errBreak)
	require.Len(t, under.batches, 1, "no retry after the context has ended")
}

func TestSharedCallsBreakTogether(t *testing.T) {
	under := &fragile{breaks: map[string]int{"b": 1 << 30}}
	calls := []sandbox.Call{{Code: "a"}, {Code: "b"}, {Code: "a"}, {Code: "b"}}
	outcomes, err := sandbox.RunEach(t.Context(), sandbox.NewOnce(under), calls)
	require.NoError(t, err)
	for i, o := range outcomes {
		require.Equal(t, i%2 == 1, o.Broken != nil, "call %d", i)
	}
	require.Equal(t, [][]string{{"a", "b"}, {"b"}, {"b"}, {"1"}}, under.batches)
}

func TestCallErrorsText(t *testing.T) {
	err := error(sandbox.CallErrors{nil, errBreak, nil, errors.New("another")})
	require.EqualError(t, err, "2 of 4 calls broke: the zygote is gone")
	require.ErrorIs(t, err, errBreak)
	require.EqualError(t, sandbox.CallErrors{nil}, "no call broke")
}
