package session

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/stretchr/testify/require"
)

func TestPythonIsReplayed(t *testing.T) {
	p := newPool(t, zygotetest.Sessions(t), Settings{Most: 1})
	value(t, p, "steady",
		"import random\nx = [random.random() for _ in range(3)]\nopen('file', 'w').write('kept')\nclass A: pass")
	first := value(t, p, "steady", "x, {str(i) for i in range(5)}, A()")
	value(t, p, "clock", "import time\ntime.time()")
	value(t, p, "other", "1")
	require.Equal(t, 1, p.Live())
	require.Equal(t, first, value(t, p, "steady", "x, {str(i) for i in range(5)}, A()"))
	require.Equal(t, "'kept'", value(t, p, "steady", "open('file').read()"))
	require.ErrorContains(t, failure(t, p, "clock", "1"), "cell 1 had another value when run again")
}

func TestPythonUnderPressure(t *testing.T) {
	s := zygotetest.Sessions(t)
	p := newPool(t, s, Settings{Most: 8})
	var all sync.WaitGroup
	for i := range 24 {
		id := fmt.Sprint("trajectory ", i)
		all.Go(func() {
			for n := range 4 {
				r, err := p.play(t.Context(), id,
					fmt.Sprintf("seen = [*globals().get('seen', []), %d]\nseen", i*100+n))
				if err != nil {
					t.Errorf("%s: %v", id, err)
					continue
				}
				want := "["
				for m := range n + 1 {
					want += fmt.Sprintf("%d, ", i*100+m)
				}
				if want = want[:len(want)-2] + "]"; r.Value != want {
					t.Errorf("%s: got %s, want %s", id, r.Value, want)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, p.Live(), 8)
}
