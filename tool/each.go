package tool

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// callsAtOnce is how many calls of a batch Each and Once run at once.
const callsAtOnce = 16

// Each runs the calls of a batch one by one, several at once, with their decoded arguments. It is the whole Run of a
// tool whose calls are independent: bad arguments become verdicts, and an error or a panic of run breaks its call.
func Each[A any](ctx context.Context, calls []Call,
	run func(ctx context.Context, c Call, arguments A) (Result, error)) ([]Result, error) {
	results, broken := make([]Result, len(calls)), make(CallErrors, len(calls))
	atOnce(len(calls), func(i int) {
		if broken[i] = context.Cause(ctx); broken[i] != nil {
			return
		}
		arguments, rejected := Decode[A](calls[i].Arguments)
		if rejected != nil {
			results[i] = *rejected
			return
		}
		broken[i] = rescue.Do(func() (err error) {
			results[i], err = run(ctx, calls[i], arguments)
			return err
		})
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := Blame(calls, broken); err != nil {
		return nil, err
	}
	return results, broken.OrNil()
}

// EachEpisode is Each for a stateful tool, with arguments that run decodes itself. It runs the calls of each episode in
// their order, several episodes at once, and adds the batch's earlier calls of the episode to Past. After a call that
// breaks, the episode's later calls break too: its state is unknown.
func EachEpisode(ctx context.Context, calls []Call,
	run func(ctx context.Context, c Call) (Result, error)) ([]Result, error) {
	results, broken := make([]Result, len(calls)), make(CallErrors, len(calls))
	episodes := byEpisode(calls)
	atOnce(len(episodes), func(e int) {
		var before []Ran
		var lost error
		for _, i := range episodes[e] {
			if broken[i] = context.Cause(ctx); broken[i] != nil {
				return
			}
			if broken[i] = lost; lost != nil {
				continue
			}
			c := calls[i]
			c.Past = slices.Concat(c.Past, before)
			broken[i] = rescue.Do(func() (err error) {
				results[i], err = run(ctx, c)
				return err
			})
			if lost = broken[i]; lost == nil {
				before = append(before, Ran{Call: withoutPast(calls[i]), Result: results[i].Untimed()})
			}
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := Blame(calls, broken); err != nil {
		return nil, err
	}
	return results, broken.OrNil()
}

func withoutPast(c Call) Call {
	c.Past = nil
	return c
}

// byEpisode returns the indices of the calls of each episode, in order.
func byEpisode(calls []Call) [][]int {
	var episodes [][]int
	seen := map[string]int{}
	for i, c := range calls {
		at, ok := seen[c.Key.Episode()]
		if !ok {
			at = len(episodes)
			seen[c.Key.Episode()] = at
			episodes = append(episodes, nil)
		}
		episodes[at] = append(episodes[at], i)
	}
	return episodes
}

// atOnce calls f with 0…n−1, at most callsAtOnce of them at once.
func atOnce(n int, f func(i int)) {
	var group rescue.WaitGroup
	places := make(chan struct{}, callsAtOnce)
	for i := range n {
		places <- struct{}{}
		group.Go(func() { defer func() { <-places }(); f(i) })
	}
	group.Wait()
}

// Blame returns an error if several different calls broke and none got a verdict. The tool is to blame then.
func Blame(calls []Call, broken CallErrors) error {
	different := false
	for i, err := range broken {
		if err == nil {
			return nil
		}
		different = different || calls[i].Digest() != calls[0].Digest()
	}
	if !different {
		return nil
	}
	return fmt.Errorf("none of %d calls got a verdict: %w", len(calls), broken[0])
}
