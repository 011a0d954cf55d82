package household

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/rescue"
)

// The folders of ALFWorld's splits, and the file that each trial of a task has.
const (
	trainFolder  = "train"
	seenFolder   = "valid_seen"
	unseenFolder = "valid_unseen"
	gameFile     = "game.tw-pddl"
)

// library is a folder of ALFWorld's games. It is read when the first game is needed.
type library struct {
	bank   *dataset.Bank[*game]
	byName map[string]*game // written before the bank's first answer
}

// newLibrary makes the library that the settings name.
func newLibrary(s Settings) *library {
	l := &library{byName: map[string]*game{}}
	l.bank = dataset.NewBank("alfworld", func(context.Context) (dataset.Tasks[*game], error) {
		tasks, err := s.read()
		if err != nil {
			return tasks.Tasks, refusal.Unusablef("environment.settings.games: %v", err)
		}
		for _, g := range slices.Concat(tasks.Train, tasks.HeldOut) {
			l.byName[g.name] = g
		}
		return tasks.Tasks, nil
	})
	return l
}

// named returns a game by its name.
func (l *library) named(name string) (*game, error) {
	if _, err := l.bank.List(context.Background(), true); err != nil {
		return nil, err
	}
	g := l.byName[name]
	if g == nil {
		return nil, fmt.Errorf("there is no game %q", name)
	}
	return g, nil
}

// gameTasks are the games of the settings with the digest of the folder: the SHA-256 of a line for each game with its
// name and the SHA-256 of its file. All splits count, so that a policy can be evaluated on either held-out split.
type gameTasks struct {
	dataset.Tasks[*game]
	digest string
}

// read reads the games for training and the held-out ones, in the order of their names.
func (s Settings) read() (tasks gameTasks, err error) {
	if !filepath.IsAbs(s.Games) {
		return tasks, fmt.Errorf("must be an absolute path, because workers read it too, got %s", s.Games)
	}
	heldOut := unseenFolder
	if s.Seen {
		heldOut = seenFolder
	}
	all := sha256.New()
	for _, split := range []string{trainFolder, seenFolder, unseenFolder} {
		games, err := readSplit(s.Games, split)
		if errors.Is(err, fs.ErrNotExist) && split != trainFolder && split != heldOut {
			continue
		}
		if err != nil {
			return tasks, err
		}
		for _, g := range games {
			fmt.Fprintf(all, "%s %s\n", g.name, g.digest)
		}
		games = slices.DeleteFunc(games, func(g *game) bool {
			return len(s.Types) > 0 && !slices.Contains(s.Types, g.start.Goal.Type)
		})
		switch split {
		case trainFolder:
			tasks.Train = games
		case heldOut:
			tasks.HeldOut = games
		}
	}
	if len(tasks.Train) == 0 || len(tasks.HeldOut) == 0 {
		return tasks, fmt.Errorf("of the types %s, %s holds %d training games and %d held-out ones",
			strings.Join(s.Types, ", "), s.Games, len(tasks.Train), len(tasks.HeldOut))
	}
	tasks.digest = hex.EncodeToString(all.Sum(nil))
	if s.Digest != "" && tasks.digest != s.Digest {
		return tasks, fmt.Errorf("the games in %s have the digest %s, and the recipe wants %s", s.Games, tasks.digest,
			s.Digest)
	}
	return tasks, nil
}

// readSplit reads the games below a folder that ALFWorld's package plays: it skips tasks about things that are sliced,
// or that are moved inside other things.
func readSplit(folder, split string) ([]*game, error) {
	var paths []string
	err := filepath.WalkDir(filepath.Join(folder, split), func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		left := strings.Contains(name, "movable") || strings.Contains(name, "Sliced")
		if err == nil && d.Name() == gameFile && !left {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	games := make([]*game, len(paths))
	err = rescue.Each(context.Background(), runtime.GOMAXPROCS(0), len(paths), func(_ context.Context, i int) error {
		text, err := os.ReadFile(paths[i])
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, filepath.Dir(paths[i]))
		if err == nil {
			games[i], err = readGame(filepath.ToSlash(name), text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", paths[i], err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	games = slices.DeleteFunc(games, func(g *game) bool { return g == nil })
	if len(games) == 0 {
		return nil, errors.New(filepath.Join(folder, split) + " holds no TASK/TRIAL/" + gameFile)
	}
	return games, nil
}

// gameTask draws a game. Each training game comes once before any repeats. The level is the number of commands that
// reach the goal if one knows where everything is, or the limit of turns if that is lower.
func (e *Household) gameTask(ctx context.Context, at env.Draw) (env.Task, error) {
	var g *game
	heldOut, err := at.Split.HeldOut()
	if err == nil {
		g, err = e.games.bank.Draw(ctx, heldOut, at.Seed, at.Place(), at.Index)
	}
	if err != nil {
		return env.Task{}, fmt.Errorf("draw a game of ALFWorld: %w", err)
	}
	w := g.start.clone()
	w.Limit = e.settings.MaxTurns
	level := w.Limit
	if plan := e.plan(w, true); plan != nil {
		level = len(plan)
	}
	return env.Task{ID: g.digest, Level: max(level, 1), Type: w.Goal.Type, Spec: string(w.encode())}, nil
}
