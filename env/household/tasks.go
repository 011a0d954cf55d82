package household

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

const (
	// heldOutOf is the number of tasks in shown layouts of which one is kept from training.
	heldOutOf = 8
	// maxTries is the number of worlds that are generated before a draw gives up.
	maxTries = 200
	// maxOfKind is the number of things of one class in a room.
	maxOfKind = 3
)

// Task generates a task. A training task is in a shown layout. A held-out task is in an unseen layout, or, if the
// settings say so, in a shown layout and one that training never draws. The level of a task is the number of commands
// that reach its goal if one knows where everything is.
func (e *Household) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	if err := ctx.Err(); err != nil {
		return env.Task{}, err
	}
	if e.games != nil {
		return e.gameTask(ctx, at)
	}
	layouts, shown := e.shown, at.Split == env.Train || e.settings.Seen
	switch at.Split {
	case env.Train:
	case env.HeldOut:
		at = env.Draw{Split: env.HeldOut, Index: at.Index} // the same order for all runs
		if !shown {
			layouts = e.unseen
		}
	default:
		return env.Task{}, fmt.Errorf("draw a household task: there is no split %q", at.Split)
	}
	label := "household tasks " + string(at.Split)
	if e.settings.Seen && at.Split == env.HeldOut {
		label += " in shown layouts"
	}
	rng := seed.Rand(label, at.Seed, uint64(at.Step), uint64(at.Index))
	for range maxTries {
		w, ok := e.generate(rng, layouts)
		if !ok || shown && w.kept() != (at.Split == env.HeldOut) {
			continue
		}
		w.Limit = e.settings.MaxTurns
		plan := e.plan(w, true)
		if plan == nil {
			continue
		}
		text := w.encode()
		digest := sha256.Sum256(text)
		return env.Task{ID: hex.EncodeToString(digest[:]), Level: len(plan), Type: w.Goal.Type,
			Spec: string(text)}, nil
	}
	return env.Task{}, fmt.Errorf("generate household task %d of step %d: %d rooms were tried, and none allows a task "+
		"of the types %s within %d turns; more places, things or turns may help", at.Index, at.Step, maxTries,
		strings.Join(e.settings.typeNames(), ", "), e.settings.MaxTurns)
}

// kept reports whether a task in a shown layout is kept from training. It does not depend on the limit of turns.
func (w *world) kept() bool {
	at := *w
	at.Limit = 1
	return sha256.Sum256(at.encode())[0]%heldOutOf == 0
}

// generate makes a task of a random type in one of the layouts. ok is false if none of them has a task of that type, or
// if the things do not fit.
func (e *Household) generate(rng *rand.Rand, layouts []layout) (w *world, ok bool) {
	types := e.settings.types()
	t := types[rng.IntN(len(types))]
	var l layout
	var goals []goal
	for range maxTries {
		if l = layouts[rng.IntN(len(layouts))]; len(l.goals(t)) > 0 {
			goals = l.goals(t)
			break
		}
	}
	if len(goals) == 0 {
		return nil, false
	}
	g := goals[rng.IntN(len(goals))]
	g.Wording = rng.IntN(2)
	w = &world{Room: l.name, Goal: g, Places: l.places, Things: slices.Clone(l.lamps), You: -1}
	n := max(t.count, 1)
	if n < maxOfKind && !e.settings.Sparse {
		n += rng.IntN(2)
	}
	for range n {
		if !w.add(rng, g.Thing, t.need == 0 && t.count > 0) {
			return nil, false
		}
	}
	e.furnish(rng, w, l)
	return w.sort(), true
}

// goals lists what tasks of a type can ask for in the layout: things of a class that can lie in a place of another
// class than the one where they are to be put.
func (l layout) goals(t taskType) (out []goal) {
	if t.appliance != "" && !l.has(t.appliance) || t.count == 0 && len(l.lamps) == 0 {
		return nil
	}
	for _, k := range kinds {
		if !slices.Contains(k.rooms, l.kind.name) || k.can&t.need != t.need || k.can&toggle != 0 {
			continue
		}
		classes := l.classesFor(k)
		if t.count == 0 && len(classes) > 0 {
			out = append(out, goal{Type: t.name, Thing: k.name, Where: lamp})
		}
		for _, class := range classes {
			if t.count > 0 && class != t.appliance && len(classes) > 1 {
				out = append(out, goal{Type: t.name, Thing: k.name, Where: class})
			}
		}
	}
	return out
}

// classesFor lists the classes of the layout's places that can hold things of a class.
func (l layout) classesFor(k kind) (out []string) {
	for _, p := range l.places {
		if slices.Contains(k.places, p.class) && !slices.Contains(out, p.class) {
			out = append(out, p.class)
		}
	}
	return out
}

// add puts one more thing of a class into a random place that can hold it, and not into the goal's places if elsewhere
// is set. It reports whether there is such a place.
func (w *world) add(rng *rand.Rand, class string, elsewhere bool) bool {
	k, _ := kindNamed(class)
	var free []int
	for i, p := range w.Places {
		if slices.Contains(k.places, p.class) && !(elsewhere && p.class == w.Goal.Where) {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return false
	}
	number := 1
	for _, t := range w.Things {
		if t.class == class {
			number++
		}
	}
	w.Things = append(w.Things, thing{class: class, number: number, at: spots{free[rng.IntN(len(free))]}, can: k.can})
	return true
}

// furnish adds things that the task does not ask for.
func (e *Household) furnish(rng *rand.Rand, w *world, l layout) {
	var others []kind
	for _, k := range kinds {
		if slices.Contains(k.rooms, l.kind.name) && k.name != w.Goal.Thing && k.can&toggle == 0 &&
			len(l.classesFor(k)) > 0 {
			others = append(others, k)
		}
	}
	n := e.settings.Things - len(w.Things)
	if e.settings.Things == 0 {
		n = len(w.Places) + rng.IntN(len(w.Places)+1)
	}
	count := map[string]int{}
	for tries := 0; n > 0 && len(others) > 0 && tries < 4*n+16; tries++ {
		k := others[rng.IntN(len(others))]
		if count[k.name] < maxOfKind && w.add(rng, k.name, false) {
			count[k.name]++
			n--
		}
	}
}

// sort orders the things by class and number.
func (w *world) sort() *world {
	slices.SortFunc(w.Things, func(a, b thing) int {
		if c := strings.Compare(a.class, b.class); c != 0 {
			return c
		}
		return a.number - b.number
	})
	return w
}

// readTask reads a task.
func (e *Household) readTask(task env.Task) (*world, error) {
	w, err := e.decode([]byte(task.Spec))
	if err == nil && (w.Turn != 0 || w.Ended) {
		err = errors.New("it has begun")
	}
	if err != nil {
		return nil, fmt.Errorf("read household task %s: %w", task.ID, err)
	}
	return w, nil
}
