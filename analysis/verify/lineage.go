package verify

import (
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// checkConfig checks that every manifest of the run was made under the recipe that its prepare stage committed, an
// amended recipe, or the recipe of the replay that claimed its generation.
func checkConfig(v *evidence) {
	key := schema.AtInit(v.run, schema.StagePrepare).ManifestKey()
	prepare, ok := v.manifests[key]
	if !ok {
		v.fault(FaultMissing, key, "cannot be read, but every manifest of the run follows from it")
		return
	}
	recipes := v.recipes()
	for _, m := range v.ordered() {
		if holdsRecipe(m) || m.Warm != "" {
			checkDocument(v, m)
		}
		if m.Warm != "" || m.Stage == schema.StagePrepare {
			continue
		}
		under := slices.IndexFunc(m.Inputs, func(ref schema.Ref) bool { return recipes[ref] != "" })
		switch {
		case under < 0:
			v.fault(FaultLineage, m.ManifestKey(), "does not name the run's recipe %s (digest %s) among its inputs",
				key, prepare.digest)
		case !holdsRecipe(m) && m.Config != recipes[m.Inputs[under]]:
			v.fault(FaultConfig, m.ManifestKey(), "was made under the recipe %s, but %s holds %s", m.Config,
				m.Inputs[under].Key, recipes[m.Inputs[under]])
		}
	}
}

// recipes returns the config of each manifest that holds a recipe: the run's, an amended one or a replay's.
func (v *evidence) recipes() map[schema.Ref]string {
	out := map[schema.Ref]string{}
	for key, m := range v.manifests {
		if holdsRecipe(m) && !m.foreign {
			out[schema.Ref{Key: key, Digest: m.digest}] = m.Config
		}
	}
	return out
}

// holdsRecipe reports whether a manifest commits a recipe, which everything made under the recipe then names.
func holdsRecipe(m committed) bool {
	return m.Warm == "" && (m.Stage == schema.StagePrepare || m.Stage == schema.StageAmend ||
		m.Stage == schema.StageReplay)
}

// checkDocument checks that a manifest's config is the digest of the document that it commits: the
// resolved recipe, or a warm start's inputs.
func checkDocument(v *evidence, m committed) {
	documents := m.ShardsOf(schema.Documents)
	if len(documents) != 1 {
		v.fault(FaultConfig, m.ManifestKey(), "commits %d documents, want 1, which its config names", len(documents))
		return
	}
	if documents[0].Digest != m.Config {
		v.fault(FaultConfig, m.ManifestKey(), "has the config %s, but commits a document of digest %s", m.Config,
			documents[0].Digest)
	}
	if m.Warm != "" && m.Warm != m.Config {
		v.fault(FaultConfig, m.ManifestKey(), "lies under a digest that is not that of its inputs, %s", m.Config)
	}
}

// checkRefs checks that every input and part exists with the digest by which it is named.
func checkRefs(v *evidence) {
	for _, m := range v.ordered() {
		for _, ref := range slices.Concat(m.Inputs, m.Parts) {
			checkRef(v, m.ManifestKey(), ref)
		}
	}
}

// checkRef checks one ref. A missing manifest is one fault, however many refs name it.
func checkRef(v *evidence, owner string, ref schema.Ref) {
	found, ok := v.manifests[ref.Key]
	switch {
	case !ok && !v.named[ref.Key]: // an unreadable manifest is a fault already
		v.name(ref.Key)
		v.fault(FaultMissing, ref.Key, "does not exist, but %s names it", owner)
	case ok && found.digest != ref.Digest:
		v.fault(FaultLineage, ref.Key, "has the digest %s, but %s was made from one of digest %s", found.digest, owner,
			ref.Digest)
	}
}

// checkHeads checks that no step without a head comes before a finished or evaluated one, and that what heads name is
// there.
func checkHeads(v *evidence) {
	next := 1
	for range v.shared {
		if _, ok := v.shared[next]; ok {
			next++
		}
	}
	for _, step := range slices.Sorted(maps.Keys(v.heads)) {
		for ; next < step; next++ {
			missingHead(v, next, "does not exist, but the later step %d has a head", step)
		}
		next = step + 1
		h := v.heads[step]
		for _, stage := range slices.Sorted(maps.Keys(h.Stages)) {
			for _, ref := range h.Stages[stage] {
				checkRef(v, h.Key(), ref)
			}
		}
	}
	checkEvaluatedHeads(v, next)
}

// checkEvaluatedHeads checks that no step without a head was evaluated, from one step on: evaluation comes after the
// head.
func checkEvaluatedHeads(v *evidence, from int) {
	if v.manifests[schema.AtInit(v.run, schema.StagePrepare).ManifestKey()].Note[schema.NoteEvaluates] != "" {
		return // another run has made the policy
	}
	last := 0
	for step, made := range v.stages {
		n, numbered := stepOf(step)
		if numbered && slices.ContainsFunc(made, func(m committed) bool { return m.Stage == schema.StageEvaluate }) {
			last = max(last, n)
		}
	}
	for step := from; step <= last; step++ {
		missingHead(v, step, "does not exist, but the policy after step %d was evaluated", last)
	}
}

// missingHead reports that a step has no head. A head that cannot be read is a fault already.
func missingHead(v *evidence, step int, format string, later int) {
	if key := schema.HeadKey(v.run, strconv.Itoa(step)); !v.named[key] {
		v.fault(FaultMissing, key, format, later)
	}
}

// reads says which stages a stage is made from, where a step has both.
var reads = func() (out []reading) {
	for _, s := range stages.All() {
		for _, r := range s.Reads {
			out = append(out, reading{s.Name, r.Stage, r.Spared})
		}
	}
	return out
}()

// reading is a stage and one that it is made from, which a replay of the former may be spared.
type reading struct {
	stage, from string
	spared      bool
}

// checkStages checks that each stage of a head, unless it is exempt, was made from the head's own manifests: from a
// stage manifest itself, or from one or more of its parts.
func checkStages(v *evidence, h schema.Head, exempt func(stage string) bool) {
	for _, r := range reads {
		if exempt != nil && exempt(r.stage) {
			continue
		}
		if !v.manifests.loaded(h.Stages[r.stage]) || !v.manifests.loaded(h.Stages[r.from]) {
			continue
		}
		inputs := v.manifests.inputs(h.Stages[r.stage])
		for _, ref := range h.Stages[r.from] {
			if r.stage == schema.StageSandbox && !v.manifests.called(ref, h) {
				continue
			}
			if r.from == schema.StageSandbox && r.stage != schema.StageAssemble &&
				v.manifests.rows([]schema.Ref{ref}, schema.Transitions) == 0 {
				continue
			}
			from := v.manifests[ref.Key]
			named := func(ref schema.Ref) bool { return inputs[ref] }
			if !inputs[ref] && !slices.ContainsFunc(from.Parts, named) {
				v.fault(FaultLineage, h.Stages[r.stage][0].Key, "was not made from %s (digest %s), which the step's "+
					"head names", ref.Key, ref.Digest)
			}
		}
	}
}

// loaded reports whether a stage exists and all its manifests could be read. If one could not, that is a fault already,
// and the checks that depend on it are skipped.
func (a manifests) loaded(stage []schema.Ref) bool {
	for _, ref := range stage {
		m, ok := a[ref.Key]
		if !ok || (len(m.Parts) > 0 && !a.loaded(m.Parts)) {
			return false
		}
	}
	return len(stage) > 0
}

// called reports whether a rollout's turn has tool calls of its own: the last turn has none.
func (a manifests) called(rollout schema.Ref, h schema.Head) bool {
	turn := a[rollout.Key].Turn
	return slices.ContainsFunc(h.Stages[schema.StageSandbox],
		func(ref schema.Ref) bool { return a[ref.Key].Turn == turn })
}

// inputs returns the inputs of manifests and of their parts. A turn and its tool calls name only the manifest before
// them, so the inputs of that manifest are included.
func (a manifests) inputs(stage []schema.Ref) map[schema.Ref]bool {
	out := map[schema.Ref]bool{}
	var add func(m committed)
	add = func(m committed) {
		for _, in := range m.Inputs {
			before := a[in.Key]
			inRollout := before.Stage == schema.StageRollout || before.Stage == schema.StageSandbox
			if !out[in] && inRollout && before.digest == in.Digest {
				out[in] = true
				add(before)
			}
			out[in] = true
		}
	}
	for _, ref := range stage {
		m := a[ref.Key]
		add(m)
		for _, part := range m.Parts {
			add(a[part.Key])
		}
	}
	return out
}

// checkRowCounts checks that every assembled trajectory has a reward or was excluded, and that exactly these
// trajectories, and those of skipped shards, have a row in the selection.
func checkRowCounts(v *evidence, _ int, h schema.Head) {
	if !v.manifests.loaded(h.Stages[schema.StageAssemble]) || !v.manifests.loaded(h.Stages[schema.StageReward]) {
		return
	}
	reward, resample := h.Stages[schema.StageReward], h.Stages[schema.StageResample]
	trajectories := v.manifests.rows(h.Stages[schema.StageAssemble], schema.Trajectories)
	scored, unscored := v.manifests.rows(reward, schema.Rewards), v.manifests.rows(reward, schema.Selection)
	if scored+unscored != trajectories {
		v.fault(FaultRows, reward[0].Key, "commits %d rows of table %s and excludes %d trajectories, but there are "+
			"%d trajectories", scored, schema.Rewards, unscored, trajectories)
	}
	if !v.manifests.loaded(resample) {
		return
	}
	selected, excluded := v.manifests.rows(resample, schema.Selection), v.excludedIn(resample)
	if selected-excluded != scored {
		v.fault(FaultRows, resample[0].Key, "commits %d rows of table %s for %d rewards, not counting %d excluded "+
			"trajectories", selected-excluded, schema.Selection, scored, excluded)
	}
	if skipped := excluded - unscored; skipped != 0 &&
		(skipped < 0 || v.manifests[resample[0].Key].Note[schema.NoteExcludedShards] == "") {
		v.fault(FaultRows, resample[0].Key, "excludes %d trajectories, but the reward stage excludes %d and no "+
			"shard was skipped", excluded, unscored)
	}
}

// checkOutputs checks that each kept trajectory of a step with the stage logprobs has its outputs. Masked trajectories
// may lack them: only older programs computed them.
func checkOutputs(v *evidence, _ int, h schema.Head) {
	outputs, resample := h.Stages[schema.StageLogprobs], h.Stages[schema.StageResample]
	if !v.manifests.loaded(outputs) || !v.manifests.loaded(resample) {
		return
	}
	kept, masked := 0, 0
	for _, s := range v.manifests[resample[0].Key].ShardsOf(schema.Selection) {
		kept += v.shards[s.Key].kept
		masked += v.shards[s.Key].masked
	}
	if n := v.manifests.rows(outputs, schema.TokenOutputs); n != kept && n != kept-masked {
		v.fault(FaultRows, outputs[0].Key, "commits %d rows of table %s for %d kept trajectories, %d of them masked", n,
			schema.TokenOutputs, kept, masked)
	}
}

// excludedIn counts the excluded trajectories of the selection that manifests commit themselves.
func (v *evidence) excludedIn(stage []schema.Ref) int {
	n := 0
	for _, ref := range stage {
		for _, s := range v.manifests[ref.Key].ShardsOf(schema.Selection) {
			n += v.shards[s.Key].excluded
		}
	}
	return n
}

func (a manifests) rows(stage []schema.Ref, table schema.Table) int {
	n := 0
	for _, ref := range stage {
		m := a[ref.Key]
		n += m.Rows(table)
		for _, part := range m.Parts {
			n += a[part.Key].Rows(table)
		}
	}
	return n
}

// checkPolicy checks that the step's update started from the policy that the step before ended with.
func checkPolicy(v *evidence, step int, h schema.Head) {
	updates := h.Stages[schema.StageUpdate]
	if !v.manifests.loaded(updates) {
		return // an import has no policy
	}
	before := schema.AtInit(v.run, schema.StageWarmStart).ManifestKey()
	if step > 1 {
		earlier := v.head(step - 1).Stages[schema.StageUpdate]
		if len(earlier) == 0 {
			return // the missing head is a fault already
		}
		before = earlier[0].Key
	}
	m := v.manifests[updates[0].Key]
	if m.Checkpoint == nil {
		v.fault(FaultLineage, updates[0].Key, "commits no checkpoint")
		return
	}
	found, ok := v.manifests[before]
	if !ok {
		return // its absence is a fault already
	}
	if !slices.Contains(m.Inputs, schema.Ref{Key: before, Digest: found.digest}) {
		v.fault(FaultLineage, updates[0].Key, "does not start from %s, the policy before the step", before)
	}
	checkUpdates(v, m, found)
}

// checkContinued checks that a stage that keeps a state from step to step continues that of the step before, if both
// steps have one.
func checkContinued(v *evidence, step int, h schema.Head) {
	for _, stage := range stages.All() {
		now, before := h.Stages[stage.Name], v.head(step - 1).Stages[stage.Name]
		if stage.Continues == "" || !v.manifests.loaded(now) || !v.manifests.loaded(before) {
			continue
		}
		if !slices.Contains(v.manifests[now[0].Key].Inputs, before[0]) {
			v.fault(FaultLineage, now[0].Key, "does not continue %s, %s before the step",
				before[0].Key, stage.Continues)
		}
	}
}

// checkUpdates checks that the rows of an update name the policies before and after it.
func checkUpdates(v *evidence, m, before committed) {
	for _, s := range m.ShardsOf(schema.Updates) {
		found := v.shards[s.Key].update
		if found == nil || before.Checkpoint == nil {
			continue
		}
		if got := found.before; got != before.Checkpoint.Digest {
			v.fault(FaultLineage, s.Key, "says that the update started from policy %s, but the step before ended "+
				"with %s", got, before.Checkpoint.Digest)
		}
		if got := found.after; got != m.Checkpoint.Digest {
			v.fault(FaultLineage, s.Key, "says that the update made policy %s, but %s commits %s", got, m.ManifestKey(),
				m.Checkpoint.Digest)
		}
	}
}
