package remote

import (
	"fmt"
	"strings"
	"time"
)

// commonFields are the settings that all environments of this package have.
type commonFields struct {
	Actions     string  `json:"actions" doc:"names of discrete actions 0, 1, …, separated by commas; empty if an action is any text" default:"\"\""`
	Instruction string  `json:"instruction" doc:"what the policy is told at every turn" default:"\"\""`
	Tasks       int     `json:"tasks" doc:"number of training tasks, whose seeds count from 0; 0 = the environment's method tasks says it, and held_out is 0 too" default:"1000" min:"0" max:"1000000"`
	HeldOut     int     `json:"held_out" doc:"number of held-out tasks, whose seeds follow" default:"100" min:"0" max:"1000000"`
	SuccessFrom float64 `json:"success_from" doc:"sum of rewards from which an ended episode is a success, if the environment does not say so itself" default:"1"`
	StepSeconds float64 `json:"step_seconds" doc:"time limit of a reset or step" default:"30" min:"0.01" max:"3600"`
	MaxKB       int     `json:"max_kb" doc:"maximum length of an observation in KiB" default:"64" min:"1" max:"1024"`
	Sessions    int     `json:"sessions" doc:"sessions that a worker keeps alive at once; others are repeated when they go on" default:"64" min:"1" max:"4096"`
	IdleSeconds int     `json:"idle_seconds" doc:"time after which an unused session ends, and a program without sessions" default:"120" min:"1" max:"86400"`
}

// step is the time limit of a reset or step.
func (f commonFields) step() time.Duration {
	return time.Duration(f.StepSeconds * float64(time.Second))
}

// idle is how long an unused session lives.
func (f commonFields) idle() time.Duration { return time.Duration(f.IdleSeconds) * time.Second }

// most bounds a reply in bytes: a byte of text takes at most six in JSON.
func (f commonFields) most() int { return 6*f.MaxKB<<10 + 1<<14 }

// settings are those of the environment. identity distinguishes its tasks from those of others.
func (f commonFields) settings(name, identity string, actions []string) Settings {
	return Settings{Name: name, Identity: identity, Instruction: f.Instruction, Train: f.Tasks, HeldOut: f.HeldOut,
		Actions: actions, SuccessFrom: f.SuccessFrom, MaxBytes: f.MaxKB << 10, Sessions: f.Sessions, Idle: f.idle()}
}

// named reads a list of action names.
func named(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	seen := map[string]bool{}
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if names[i] == "" || seen[names[i]] {
			return nil, fmt.Errorf("actions: name %d is empty or occurs twice in %q", i+1, list)
		}
		seen[names[i]] = true
	}
	return names, nil
}
