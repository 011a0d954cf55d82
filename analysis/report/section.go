package report

import "slices"

// Section is a part of the page.
type Section struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Figures []Figure `json:"figures"`
	Wide    bool     `json:"-"` // one column

	empty []Figure // the page names them at its end
}

// LeftOut names the figures that a page leaves out for one reason.
type LeftOut struct {
	Why    string
	Titles []string
}

// treesID is the section of runs with rollout.tree.
const treesID = "trees"

// neverRecorded are diagnoses of the papers that no record has the data for; of the first, no record without trees.
var neverRecorded = []LeftOut{
	{"Each trajectory is sampled from the start: the record has no branches.", []string{"Branches per trajectory"}},
	{"The batch holds only their sum.", []string{"Step advantages and episode advantages"}},
	{"The selection holds only scores, counts and weights.", []string{"VSPO's sampling probabilities"}},
}

// leftOut collects what a page of one run leaves out.
func leftOut(all []Section) []LeftOut {
	out := emptyFigures(all)
	trees := slices.ContainsFunc(all, func(s Section) bool { return s.ID == treesID })
	for i, l := range neverRecorded {
		if i > 0 || !trees {
			out = append(out, l)
		}
	}
	return out
}

// emptyFigures collects the empty figures of sections by their reasons.
func emptyFigures(all []Section) []LeftOut {
	var out []LeftOut
	for _, s := range all {
		for _, f := range s.empty {
			i := slices.IndexFunc(out, func(l LeftOut) bool { return l.Why == f.Empty })
			if i < 0 {
				i, out = len(out), append(out, LeftOut{Why: f.Empty})
			}
			out[i].Titles = append(out[i].Titles, f.Title)
		}
	}
	return out
}

// section declares a part of the page: its figures in their order, which name the questions they ask, and when it is
// shown.
type section struct {
	id, title string
	figures   []figure

	// gate and shown make a section conditional: it is shown where shown accepts the data, which then holds the answer
	// to gate. Its questions are asked in that case only.
	gate  string
	shown func(d data) bool
	// allGenerations asks the section's questions of replays too, not only of what the heads name.
	allGenerations bool
	wide           bool // one column
}

// sections are the parts of the page, in their order.
var sections = []section{
	{id: "learning", title: "Learning", figures: []figure{reward, success, trainingLevels, evaluationLevels,
		trainingParts, evaluationParts}},
	{id: "cold-start", title: "Before and after the warm start", figures: []figure{coldStart},
		shown: func(d data) bool { return d.cold != nil }},
	{id: "held-out", title: "Held-out tasks", figures: []figure{evaluationTypes, evaluationScores},
		gate: "evaluation_kinds", shown: func(d data) bool {
			return d.answers["evaluation_kinds"].number(0, "n") > 0
		}},
	{id: "selection", title: "Selection", figures: []figure{funnel, outcomes, judged, zeroAdvantage, toolErrors}},
	{id: "world", title: "World", figures: []figure{
		beforeTraining, errorRates, invalidKinds, actionsOfSuccesses, actionsOfFailures,
		callsOfSuccesses, callsOfFailures, searchEffort, searchOutcomes, searchRepeats,
	}},
	{id: treesID, title: "Trees", figures: []figure{treeTokens, treeRoles, treeSpread, treeRuns, treeDecisions,
		oneTree},
		gate: "trees", shown: func(d data) bool { return d.answers["trees"].number(0, "n") > 0 }},
	{id: "versions", title: "Versions that sampled", figures: []figure{turnLags, groupVersions, versionLengths},
		shown: pipelined},
	{id: "update", title: "Update", figures: []figure{
		entropy, divergence, clipping, lengths, advantages, advantageSigns, gradients, criticFit, criticValues,
	}},
	{id: "time", title: "Time", figures: []figure{stages, rolloutTime, orchestration, latency, devices}},
	{id: "diagnostics", title: "Diagnostics", figures: []figure{
		groupSpread, penalties, passAtK, vspoDraws,
		answerCounts, truncation, effort, validity, allCalls, toolLoad,
		replayBuffer, replayBufferWorth,
		clusters, entropySums, hesitation, modelsApart, eightGroups, anchorGroups, stability,
	}},
	{id: "tasks", title: "Tasks", figures: []figure{passHatK, taskTable, toolTable},
		gate: "conversations", shown: func(d data) bool {
			return d.answers["conversations"].number(0, "n") > 0
		}},
	{id: "recipe", title: "Recipe", figures: []figure{recipeChosen, recipeStandard, madeBy}, wide: true},
	{id: replaysID, title: "Replays", figures: []figure{replayedRewards, replayedSelection},
		allGenerations: true, shown: func(d data) bool { return d.replays }},
}

// render draws the section's figures.
func (s section) render(d data) Section {
	out := Section{ID: s.id, Title: s.title, Wide: s.wide}
	for _, declared := range s.figures {
		f, ok := declared.render(d)
		switch {
		case !ok:
		case f.Empty != "":
			out.empty = append(out.empty, f)
		default:
			out.Figures = append(out.Figures, f)
		}
	}
	return out
}

// needs lists the questions of the sections that every page has, and the gates of the others, each once.
func needs(all []section) []string {
	var out []string
	for _, s := range all {
		if s.gate != "" {
			out = append(out, s.gate)
		}
		if s.shown == nil {
			out = append(out, s.needs()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// needs lists the questions of the section's figures.
func (s section) needs() []string {
	var out []string
	for _, f := range s.figures {
		out = append(out, f.needs()...)
	}
	return out
}
