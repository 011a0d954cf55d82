// Package activities brings the stages of all topics together and registers them with a worker. Each stage fetches the
// rows behind its references, calls one domain package, and commits the result. Only the packages below this folder
// bring store, schema and the domain packages together.
//
// Four services serve the stages of a worker: its *records* are what runs have committed (record), its *recipes* what
// they follow (resolver), and its *execution* and *engines* run programs and models (resource). They meet in
// stage.Worker, the frame of every stage. The stages of a topic are a package: prepare, data, warmstart, episodes,
// verdict, learn, evaluate, replay, upkeep and experiments.
package activities

import (
	"maps"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/evaluate"
	"github.com/ropewalk/ropewalk/activities/experiments"
	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/prepare"
	"github.com/ropewalk/ropewalk/activities/replay"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/upkeep"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/activities/warmstart"
)

// New makes a worker with all stages. The caller that opened the engines, the sandbox and the sessions closes them,
// after Close.
func New(o stage.Options) (*stage.Worker, error) {
	w, err := stage.New(o)
	if err == nil {
		w.Activities = Stages(w)
	}
	return w, err
}

// Register registers a worker's activities; the queue decides which of them it runs.
func Register(r worker.ActivityRegistry, w *stage.Worker) {
	for name, s := range w.Activities {
		r.RegisterActivityWithOptions(s.Activity, activity.RegisterOptions{Name: name})
	}
}

// Stages lists the stages of a worker by the names of their activities.
func Stages(w *stage.Worker) map[string]stage.Activity {
	all := map[string]stage.Activity{}
	for _, list := range []map[string]stage.Activity{prepare.Stages(w), warmstart.Stages(w), data.Stages(w),
		episodes.Stages(w), verdict.Stages(w), learn.Stages(w), evaluate.Stages(w), replay.Stages(w),
		upkeep.Stages(w), experiments.Stages(w)} {
		maps.Copy(all, list)
	}
	return all
}
