package rescue_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

func explode() { panic(fmt.Errorf("read row 7: %w", io.ErrUnexpectedEOF)) }

func TestDo(t *testing.T) {
	require.NoError(t, rescue.Do(func() error { return nil }))
	require.ErrorIs(t, rescue.Do(func() error { return io.EOF }), io.EOF)
	require.Empty(t, rescue.Stack(io.EOF))

	err := rescue.Do(func() error { explode(); return nil })
	require.EqualError(t, err, "panicked: read row 7: unexpected EOF")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Contains(t, rescue.Stack(fmt.Errorf("generate: %w", err)), "explode")

	var empty []int
	err = rescue.Do(func() error { _ = empty[len(empty)]; return nil })
	require.ErrorContains(t, err, "panicked: runtime error: index out of range")
}

func TestAPanicThrownAgainKeepsItsStack(t *testing.T) {
	first := rescue.Do(func() error { explode(); return nil })
	again := rescue.Do(func() error { panic(first) })
	require.Same(t, first, again)
	var p *rescue.Panic
	require.True(t, errors.As(again, &p))
	require.Contains(t, string(p.Stack), "explode")
}
