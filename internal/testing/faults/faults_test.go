package faults_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestWithoutRulesItConforms(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return faults.New(mem.New()) })
}

func TestNthCallOfAnOperationOnAKey(t *testing.T) {
	mine := errors.New("disk on fire")
	s := faults.New(mem.New(), faults.Rule{Op: faults.Put, Key: "table=turns", Nth: 2, Err: mine})
	require.NoError(t, s.Put(t.Context(), "table=turns/a", []byte("aa")))
	require.NoError(t, s.Put(t.Context(), "table=rewards/a", []byte("aa")))
	require.NoError(t, s.PutIfAbsent(t.Context(), "table=turns/c", []byte("aa")))
	err := s.Put(t.Context(), "table=turns/b", []byte("bb"))
	require.ErrorIs(t, err, mine)
	require.ErrorContains(t, err, "put table=turns/b")
	_, err = s.Get(t.Context(), "table=turns/b")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, s.Put(t.Context(), "table=turns/b", []byte("bb")))
	require.Equal(t, 3, s.Count(faults.Put, "turns"))
	require.Equal(t, faults.Call{Op: faults.PutIfAbsent, Key: "table=turns/c"}, s.Log()[2])
}

func TestEffects(t *testing.T) {
	tests := []struct {
		name   string
		effect faults.Effect
		err    error
		stored string // "" is nothing
	}{
		{"fail", faults.Fail, faults.ErrInjected, ""},
		{"lost acknowledgement", faults.LostAck, faults.ErrInjected, "abcd"},
		{"torn", faults.Torn, faults.ErrInjected, "ab"},
		{"torn silently", faults.TornSilently, nil, "ab"},
	}
	for _, test := range tests {
		for _, op := range []faults.Op{faults.Put, faults.PutIfAbsent} {
			t.Run(test.name+" "+string(op), func(t *testing.T) {
				s := faults.New(mem.New(), faults.Rule{Op: op, Effect: test.effect})
				put := s.Put
				if op == faults.PutIfAbsent {
					put = s.PutIfAbsent
				}
				require.ErrorIs(t, put(t.Context(), "k", []byte("abcd")), test.err)
				data, err := s.Get(t.Context(), "k")
				if test.stored == "" {
					require.ErrorIs(t, err, store.ErrNotFound)
					return
				}
				require.NoError(t, err)
				require.Equal(t, test.stored, string(data))
			})
		}
	}
}

func TestTornGet(t *testing.T) {
	s := faults.New(mem.New(), faults.Rule{Op: faults.Get, Nth: 1, Effect: faults.TornSilently})
	require.NoError(t, s.Put(t.Context(), "k", []byte("abcd")))
	data, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "ab", string(data))
	data, err = s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "abcd", string(data))
}

func TestDelayObeysTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faults.New(mem.New(), faults.Rule{Op: faults.List, Effect: faults.Delay, Delay: time.Minute})
		start := time.Now()
		_, err := s.List(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.List(ctx, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
