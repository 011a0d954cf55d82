package sokoban

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// heldOutOf is the number of tasks of which one is held out.
const heldOutOf = 8

// splitOf returns the split of a task's room. It depends only on the rows, so another turn limit never moves a room to
// the other split.
func splitOf(rows []string) env.Split {
	digest := sha256.Sum256([]byte(strings.Join(rows, "\n")))
	if digest[0]%heldOutOf == 0 {
		return env.HeldOut
	}
	return env.Train
}

// task makes the task of a room.
func (s *Sokoban) task(rows []string, level int) (env.Task, error) {
	text, err := json.Marshal(spec{Rows: rows, Turns: s.settings.MaxTurns})
	if err != nil {
		return env.Task{}, fmt.Errorf("write a sokoban task: %w", err)
	}
	digest := sha256.Sum256(text)
	return env.Task{ID: hex.EncodeToString(digest[:]), Level: level, Spec: string(text)}, nil
}

// Task returns a room: a level or a generated room. The levels come in a seeded order, and each comes once before any
// repeats. The difficulty of a level is its number of boxes. The difficulty of a generated room is the number of moves
// of its shortest solution.
func (s *Sokoban) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	if err := ctx.Err(); err != nil {
		return env.Task{}, err
	}
	if at.Split == env.HeldOut {
		at = env.Draw{Split: env.HeldOut, Index: at.Index} // the same order for all runs
	}
	switch {
	case at.Split != env.Train && at.Split != env.HeldOut:
		return env.Task{}, fmt.Errorf("draw a sokoban task: there is no split %q", at.Split)
	case s.rooms != nil:
		return s.level(at)
	}
	return s.room(at)
}

func (s *Sokoban) level(at env.Draw) (env.Task, error) {
	rooms, err := s.rooms()
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a sokoban task: %w", err)
	}
	own := rooms[at.Split]
	if len(own) == 0 {
		return env.Task{}, fmt.Errorf("draw a sokoban task: none of the %d levels is in the split %s",
			len(rooms[env.Train])+len(rooms[env.HeldOut]), at.Split)
	}
	epoch, i := at.Place()/len(own), at.Place()%len(own)
	rows := own[seed.Rand("sokoban levels "+string(at.Split), at.Seed, uint64(epoch)).Perm(len(own))[i]].Rows
	boxes := strings.Count(strings.Join(rows, ""), string(box)) + strings.Count(strings.Join(rows, ""),
		string(boxOnTarget))
	return s.task(rows, boxes)
}

func (s *Sokoban) room(at env.Draw) (env.Task, error) {
	rng := seed.Rand("sokoban rooms "+string(at.Split), at.Seed, uint64(at.Step), uint64(at.Index))
	rows, moves := s.generate(rng)
	for tries := 0; rows == nil || splitOf(rows) != at.Split; tries++ {
		if tries == maxTries {
			return env.Task{},
				fmt.Errorf("generate sokoban room %d of step %d: %d rooms of %d × %d with %d boxes were tried, and "+
					"none needs %d to %d moves",
					at.Index, at.Step, tries, s.settings.Size, s.settings.Size, s.settings.Boxes, s.settings.MinMoves,
					s.settings.MaxMoves)
		}
		rows, moves = s.generate(rng)
	}
	return s.task(rows, moves)
}
