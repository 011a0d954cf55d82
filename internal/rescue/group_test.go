package rescue_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

func TestAPanicEndsAGroupAsAnError(t *testing.T) {
	g, ctx := rescue.WithContext(t.Context())
	g.Go(func() error { explode(); return nil })
	err := g.Wait()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Contains(t, rescue.Stack(err), "explode")
	require.Error(t, ctx.Err())
}

func TestAPanicComesOutOfWait(t *testing.T) {
	var w rescue.WaitGroup
	done := false
	w.Go(explode)
	w.Go(func() { done = true })
	err := rescue.Do(func() error { w.Wait(); return nil })
	var p *rescue.Panic
	require.True(t, errors.As(err, &p))
	require.Contains(t, string(p.Stack), "explode", "the stack is that of the function")
	require.True(t, done)
	new(rescue.WaitGroup).Wait()
}
