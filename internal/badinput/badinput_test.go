package badinput_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

func TestErrorsAreMarkedAndWrapped(t *testing.T) {
	err := fmt.Errorf("run: %w", badinput.Errorf("--seed: %w", io.EOF))
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, bad, "--seed: EOF")
	require.ErrorIs(t, err, io.EOF)
	require.ErrorAs(t, badinput.Of(io.EOF), &bad)
	require.False(t, errors.As(io.EOF, &bad))
}
