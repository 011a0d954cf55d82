package activities

import (
	"maps"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
)

// Register registers a worker's activities; the queue decides which of them it runs.
func Register(w worker.ActivityRegistry, d *Deps) {
	for name, stage := range d.Activities {
		w.RegisterActivityWithOptions(stage.activity, activity.RegisterOptions{Name: name})
	}
}

// Stages lists the stages of a worker by the names of their activities.
func Stages(d *Deps) map[string]stageActivity {
	all := map[string]stageActivity{}
	for _, list := range []func(*Deps) map[string]stageActivity{prepareStages, warmstartStages, dataStages, episodesStages,
		verdictStages, learnStages, evaluateStages, replayStages, upkeepStages} {
		maps.Copy(all, list(d))
	}
	return all
}
