package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// submitAll submits calls with these codes and returns a channel with their answers.
func submitAll(t *testing.T, s *Service, codes ...string) <-chan answer {
	t.Helper()
	answers := make(chan answer, len(codes))
	l := &receiver{client: s.clients.anyone, deliver: func(a answer) { answers <- a }}
	for i, code := range codes {
		require.NoError(t, s.submit(t.Context(), l, request{key: fmt.Sprint(code, i), call: callOf(code)}))
	}
	return answers
}

// Calls that are set aside occupy no worker, however many they are.
func TestCallsSetAsideLetOthersPass(t *testing.T) {
	f := &fake{hold: make(chan struct{})}
	s := newService(t, Options{Executor: f})
	aside := submitAll(t, s, "aside", "aside", "aside", "aside", "aside", "aside", "aside", "aside")
	select {
	case a := <-submitAll(t, s, "1"):
		require.NoError(t, a.err)
	case <-time.After(hangs):
		t.Fatal("a call behind those set aside was never run")
	}
	close(f.hold)
	for range 8 {
		require.NoError(t, (<-aside).err)
	}
	require.Eventually(t, func() bool { return s.queue.room.TryAcquire(s.o.QueueBytes) }, hangs,
		time.Millisecond, "their bytes are given back")
	s.queue.releaseRoom(s.o.QueueBytes)
}

// Calls that are set aside count towards the queue's bytes. If the queue is full, no more requests are read.
func TestCallsSetAsideAreBounded(t *testing.T) {
	f := &fake{hold: make(chan struct{})}
	s := newService(t, Options{Executor: f})
	others := s.o.QueueBytes - 3*weigh(callOf("aside"))
	require.NoError(t, s.queue.room.Acquire(t.Context(), others))
	aside := submitAll(t, s, "aside", "aside", "aside")
	require.Eventually(t, func() bool { return f.runs() == 3 && s.full() }, hangs, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	late := &receiver{client: s.clients.anyone}
	require.ErrorIs(t, s.submit(ctx, late, request{key: "more", call: callOf("1")}), context.DeadlineExceeded)
	close(f.hold)
	for range 3 {
		require.NoError(t, (<-aside).err)
	}
	require.NoError(t, (<-submitAll(t, s, "1")).err)
	s.queue.releaseRoom(others)
}

// full reports whether the queue has no byte of room.
func (s *Service) full() bool {
	if s.queue.room.TryAcquire(1) {
		s.queue.releaseRoom(1)
		return false
	}
	return true
}

func callOf(code string) sandbox.Call { return sandbox.Call{Code: code} }
