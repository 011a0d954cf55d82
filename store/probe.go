package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// probeWriters is the number of conditional puts that Probe runs concurrently.
const probeWriters = 32

// probeCleanup bounds the removal of the probe's object.
const probeCleanup = 10 * time.Second

// Probe checks that the store honours conditional puts: of 32 concurrent writers of different bytes under one fresh key
// exactly one may win, and the object must be the winner's. Otherwise Probe returns ErrUnconditional, because on such a
// store two attempts of a stage could both commit. Any other error comes from the store. Probe removes what it wrote.
func Probe(ctx context.Context, s Store) (err error) {
	key := ".ropewalk-probe/" + rand.Text() // must be fresh, so it does not come from a run's seed
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer cancel()
		if e := s.Delete(ctx, key); e != nil && err == nil {
			err = fmt.Errorf("probe the store: %w", e)
		}
	}()
	outcomes := putConcurrently(ctx, s, key)
	winner := -1
	for i, e := range outcomes {
		switch {
		case e == nil && winner >= 0:
			return unconditional(s,
				fmt.Sprintf("at least two of %d concurrent put-if-absent requests for one key succeeded", probeWriters))
		case e == nil:
			winner = i
		case !errors.Is(e, ErrExists):
			return fmt.Errorf("probe the store: %w", e)
		}
	}
	got, err := s.Get(ctx, key)
	if winner < 0 && errors.Is(err, ErrNotFound) {
		return unconditional(s, fmt.Sprintf("none of %d concurrent put-if-absent requests for a fresh key succeeded",
			probeWriters))
	}
	if err != nil {
		return fmt.Errorf("probe %s: %w", s, err)
	}
	if winner < 0 { // the winner's reply was lost, and its repetition has found its own object
		winner = slices.IndexFunc(bodies(), func(b []byte) bool { return bytes.Equal(b, got) })
	}
	if winner < 0 || !bytes.Equal(got, probeBody(winner)) {
		return unconditional(s, "a put-if-absent request that lost replaced the winner's object")
	}
	return nil
}

// putConcurrently starts all writers at once and returns their results.
func putConcurrently(ctx context.Context, s Store, key string) []error {
	outcomes := make([]error, probeWriters)
	start := make(chan struct{})
	var wg rescue.WaitGroup
	for i := range outcomes {
		wg.Go(func() {
			<-start
			outcomes[i] = s.PutIfAbsent(ctx, key, probeBody(i))
		})
	}
	close(start)
	wg.Wait()
	return outcomes
}

// bodies are what the writers write.
func bodies() (out [][]byte) {
	for i := range probeWriters {
		out = append(out, probeBody(i))
	}
	return out
}

func probeBody(i int) []byte { return fmt.Appendf(nil, "conditional put of writer %02d\n", i) }

func unconditional(s Store, finding string) error {
	return fmt.Errorf("probe %s: %w: %s; use a server that implements If-None-Match (Amazon S3, versitygw, Ceph, "+
		"MinIO), "+
		"and no proxy in front of it that drops the header", s, ErrUnconditional, finding)
}
