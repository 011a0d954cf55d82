package curation

import (
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/env"
)

// Teacher demonstrates kept tasks alone, so that a policy is not cloned on questions of an evaluation set.
type Teacher struct {
	env.Teacher
	Kept []env.Task // at least one
}

// Draw draws a kept task of any level.
func (t Teacher) Draw(rng *rand.Rand, _ env.Lesson) (env.Task, error) {
	return t.Kept[rng.IntN(len(t.Kept))], nil
}

// Right reports whether an answer is right, by the environment's own comparison if it has one.
func (t Teacher) Right(task env.Task, answer string) bool {
	if m, ok := t.Teacher.(env.Marker); ok {
		return m.Right(task, answer)
	}
	return answer == task.Answer
}
