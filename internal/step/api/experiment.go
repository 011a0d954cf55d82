package api

import "encoding/json"

// ExperimentFile is an experiment as its workflow carries it.
type ExperimentFile struct {
	// YAML is the whole file; File is its name in messages.
	YAML string `json:"experiment_yaml"`
	File string `json:"experiment_file,omitempty"`
	// Recipes are the texts of the recipes that the arms name as files.
	Recipes map[string]string `json:"recipes,omitempty"`
	// Known are runs that are done elsewhere: the curve (experiment.Curve) by which the stop rule ranks each, or null.
	Known map[string]json.RawMessage `json:"known,omitempty"`
}

// Trial is a run of an experiment.
type Trial struct {
	Run    string   `json:"run_id"`
	Arm    string   `json:"arm"`
	Seed   uint64   `json:"seed"`
	Recipe string   `json:"recipe"` // a built-in one, or a key of ExperimentFile.Recipes
	Set    []string `json:"set,omitempty"`
	Digest string   `json:"digest"` // of the resolved recipe
	Steps  int      `json:"steps"`
	Done   bool     `json:"done,omitempty"` // its last evaluation is committed
}

// PlanExperimentInput asks for the trials of an experiment.
type PlanExperimentInput struct{ ExperimentFile }

// PlannedExperiment lists the trials of an experiment, in the order in which they start.
type PlannedExperiment struct {
	Name     string  `json:"name"`
	Trials   []Trial `json:"trials"`
	Parallel int     `json:"parallel"`
	// Holds are the steps after which trials wait for the stop rule, and 0 for the end.
	Holds []int `json:"holds"`
}

// JudgeTrialsInput asks which of the trials end after a step, by the experiment's stop rule.
type JudgeTrialsInput struct {
	ExperimentFile
	Step int      `json:"step"`
	Runs []string `json:"runs"`
}

// JudgedTrials says why trials end, by their runs.
type JudgedTrials struct {
	Ended map[string]string `json:"ended"`
}
