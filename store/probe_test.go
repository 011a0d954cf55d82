package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// conditional replaces the conditional put of a memory store.
type conditional struct {
	*mem.Store
	put func(context.Context, *mem.Store, string, []byte) error
}

func (c conditional) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return c.put(ctx, c.Store, key, data)
}

func TestProbe(t *testing.T) {
	full := errors.New("disk on fire")
	tests := []struct {
		name string
		put  func(context.Context, *mem.Store, string, []byte) error
		want error
		text string
	}{
		{"honours the condition", func(ctx context.Context, s *mem.Store, key string, data []byte) error {
			return s.PutIfAbsent(ctx, key, data)
		}, nil, ""},
		{"ignores the condition", func(ctx context.Context, s *mem.Store, key string, data []byte) error {
			return s.Put(ctx, key, data)
		}, store.ErrUnconditional, "at least two of 32"},
		{"refuses every writer", func(context.Context, *mem.Store, string, []byte) error { return store.ErrExists },
			store.ErrUnconditional, "none of 32"},
		{"says exists and overwrites", func(ctx context.Context, s *mem.Store, key string, data []byte) error {
			err := s.PutIfAbsent(ctx, key, data)
			if errors.Is(err, store.ErrExists) {
				_ = s.Put(ctx, key, data)
			}
			return err
		}, store.ErrUnconditional, "replaced the winner's"},
		{"loses the winner's reply", func(ctx context.Context, s *mem.Store, key string, data []byte) error {
			_ = s.PutIfAbsent(ctx, key, data)
			return store.ErrExists
		}, nil, ""},
		{"breaks", func(context.Context, *mem.Store, string, []byte) error { return full }, full, "probe the store"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := conditional{mem.New(), test.put}
			err := store.Probe(t.Context(), s)
			if test.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, test.want)
				require.ErrorContains(t, err, test.text)
			}
			left, err := s.List(t.Context(), "")
			require.NoError(t, err)
			require.Empty(t, left, "the probe leaves nothing")
		})
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "runs/run=x/table=y/step=3/gen=0/00000-ab.parquet", strings.Repeat("k", 1024)} {
		require.NoError(t, store.CheckKey(key))
	}
	for _, key := range []string{"", "/", "a//b", "a/", "..", "a/../b", "a\\b", "a\nb", "\xff",
		strings.Repeat("k", 1025)} {
		require.Error(t, store.CheckKey(key), "%q", key)
	}
}
