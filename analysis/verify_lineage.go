package analysis

import (
	"maps"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/schema"
)

// checkConfig holds every manifest of the run against the recipe that its prepare stage committed, or
// against that of the replay which has claimed its generation.
func (v *verifier) checkConfig() {
	key := schema.AtInit(v.run, schema.StagePrepare).ManifestKey()
	prepare, ok := v.manifests[key]
	if !ok {
		v.fault(FaultMissing, key, "cannot be read, and every manifest of the run follows from it")
		return
	}
	recipes := v.recipes()
	for _, m := range v.ordered() {
		if holdsRecipe(m) || m.Warm != "" {
			v.checkDocument(m)
		}
		if m.Warm != "" || m.Stage == schema.StagePrepare {
			continue
		}
		under := slices.IndexFunc(m.Inputs, func(ref schema.Ref) bool { return recipes[ref] != "" })
		switch {
		case under < 0:
			v.fault(FaultLineage, m.ManifestKey(), "does not name the run's recipe %s (digest %s) among its inputs", key, prepare.digest)
		case !holdsRecipe(m) && m.Config != recipes[m.Inputs[under]]:
			v.fault(FaultConfig, m.ManifestKey(), "was made under the recipe %s, and %s holds %s", m.Config, m.Inputs[under].Key, recipes[m.Inputs[under]])
		}
	}
}

// recipes returns the config of each manifest that holds a recipe, the run's, an amended one or a replay's.
func (v *verifier) recipes() map[schema.Ref]string {
	out := map[schema.Ref]string{}
	for key, m := range v.manifests {
		if holdsRecipe(m) {
			out[schema.Ref{Key: key, Digest: m.digest}] = m.Config
		}
	}
	return out
}

// holdsRecipe reports whether what is made under a recipe names this manifest.
func holdsRecipe(m committed) bool {
	return m.Warm == "" && (m.Stage == schema.StagePrepare || m.Stage == schema.StageAmend || m.Stage == schema.StageReplay)
}

// checkDocument checks that a manifest's config is the digest of the document that it commits: the
// resolved recipe, or a warm start's inputs.
func (v *verifier) checkDocument(m committed) {
	documents := m.ShardsOf(schema.Documents)
	if len(documents) != 1 {
		v.fault(FaultConfig, m.ManifestKey(), "commits %d documents, want the one that its config names", len(documents))
		return
	}
	if documents[0].Digest != m.Config {
		v.fault(FaultConfig, m.ManifestKey(), "has the config %s and commits a document of digest %s", m.Config, documents[0].Digest)
	}
	if m.Warm != "" && m.Warm != m.Config {
		v.fault(FaultConfig, m.ManifestKey(), "lies under another digest than that of its inputs, %s", m.Config)
	}
}

// ordered lists the manifests in the order of their keys.
func (v *verifier) ordered() []committed {
	out := make([]committed, 0, len(v.manifests))
	for _, key := range v.keys() {
		out = append(out, v.manifests[key])
	}
	return out
}

// checkRefs checks that every input and part exists with the digest by which it is named.
func (v *verifier) checkRefs() {
	for _, m := range v.ordered() {
		for _, ref := range slices.Concat(m.Inputs, m.Parts) {
			v.checkRef(m.ManifestKey(), ref)
		}
	}
}

// checkRef checks one ref; of a manifest that many name, the absence is one fault.
func (v *verifier) checkRef(owner string, ref schema.Ref) {
	found, ok := v.manifests[ref.Key]
	switch {
	case !ok && !v.named[ref.Key]: // what was found and could not be read is a fault already
		v.name(ref.Key)
		v.fault(FaultMissing, ref.Key, "is not there, and %s names it", owner)
	case ok && found.digest != ref.Digest:
		v.fault(FaultLineage, ref.Key, "has the digest %s, and %s was made from one of digest %s", found.digest, owner, ref.Digest)
	}
}

// checkHeads checks the steps that are done: each after the one before it, and each stage made
// from the stages before.
func (v *verifier) checkHeads() {
	steps := slices.Sorted(maps.Keys(v.heads))
	next := 1
	for _, step := range steps {
		for ; next < step; next++ {
			v.fault(FaultMissing, schema.HeadKey(v.run, strconv.Itoa(next)), "is not there, and the later step %d has a head", step)
		}
		next = step + 1
		h := v.heads[step]
		for _, stage := range slices.Sorted(maps.Keys(h.Stages)) {
			for _, ref := range h.Stages[stage] {
				v.checkRef(h.Key(), ref)
			}
		}
		v.checkStages(h, nil)
		v.checkRowCounts(h)
		v.checkOutputs(h)
		v.checkReplays(step, h)
		v.checkPolicy(step, h)
		v.checkBuffer(step, h)
	}
}

// reads says which stages a stage is made from, where a step has both.
var reads = []struct{ stage, from string }{
	{schema.StageRollout, schema.StagePrompts},
	{schema.StageSandbox, schema.StageRollout},
	{schema.StageAssemble, schema.StageRollout},
	{schema.StageAssemble, schema.StageSandbox},
	{schema.StageGrade, schema.StageAssemble},
	{schema.StageReward, schema.StageAssemble},
	{schema.StageReward, schema.StageGrade},
	{schema.StageResample, schema.StageReward},
	{schema.StageForward, schema.StageRollout},
	{schema.StageForward, schema.StageResample},
	{schema.StageAdvantage, schema.StageRollout},
	{schema.StageAdvantage, schema.StageReward},
	{schema.StageAdvantage, schema.StageResample},
	{schema.StageAdvantage, schema.StageForward},
	{schema.StageBuffer, schema.StageReward},
	{schema.StageBuffer, schema.StageAdvantage},
	{schema.StageUpdate, schema.StageAdvantage},
	{schema.StageUpdate, schema.StageBuffer},
	{schema.StagePublish, schema.StageUpdate},
}

// checkStages checks that each stage of a head was made from the head's own manifests: from a
// stage manifest itself, or from one or more of its parts. Stages that are exempt are not checked.
func (v *verifier) checkStages(h schema.Head, exempt func(stage string) bool) {
	for _, r := range reads {
		if exempt != nil && exempt(r.stage) {
			continue
		}
		if !v.loaded(h.Stages[r.stage]) || !v.loaded(h.Stages[r.from]) {
			continue
		}
		inputs := v.inputs(h.Stages[r.stage])
		for _, ref := range h.Stages[r.from] {
			if r.stage == schema.StageSandbox && !v.called(ref, h) {
				continue
			}
			from := v.manifests[ref.Key]
			named := func(ref schema.Ref) bool { return inputs[ref] }
			if !inputs[ref] && !slices.ContainsFunc(from.Parts, named) {
				v.fault(FaultLineage, h.Stages[r.stage][0].Key, "is not made from %s (digest %s), which the step's head names", ref.Key, ref.Digest)
			}
		}
	}
}

// loaded reports whether a stage is there and all its manifests could be read; where one could not,
// that is the fault, and what follows from it is not another.
func (v *verifier) loaded(stage []schema.Ref) bool {
	for _, ref := range stage {
		m, ok := v.manifests[ref.Key]
		if !ok || (len(m.Parts) > 0 && !v.loaded(m.Parts)) {
			return false
		}
	}
	return len(stage) > 0
}

// called reports whether a rollout's turn has tool calls of its own: the last turn has none.
func (v *verifier) called(rollout schema.Ref, h schema.Head) bool {
	turn := v.manifests[rollout.Key].Turn
	return slices.ContainsFunc(h.Stages[schema.StageSandbox], func(ref schema.Ref) bool { return v.manifests[ref.Key].Turn == turn })
}

// inputs are those of manifests and of their parts.
func (v *verifier) inputs(stage []schema.Ref) map[schema.Ref]bool {
	out := map[schema.Ref]bool{}
	for _, ref := range stage {
		m := v.manifests[ref.Key]
		for _, in := range m.Inputs {
			out[in] = true
		}
		for _, part := range m.Parts {
			for _, in := range v.manifests[part.Key].Inputs {
				out[in] = true
			}
		}
	}
	return out
}

// checkRowCounts checks that every assembled trajectory has a reward or was excluded, and that each
// of them, and no other but those of skipped shards, has a row in the selection.
func (v *verifier) checkRowCounts(h schema.Head) {
	if !v.loaded(h.Stages[schema.StageAssemble]) || !v.loaded(h.Stages[schema.StageReward]) {
		return
	}
	reward, resample := h.Stages[schema.StageReward], h.Stages[schema.StageResample]
	trajectories := v.rows(h.Stages[schema.StageAssemble], schema.Trajectories)
	scored, unscored := v.rows(reward, schema.Rewards), v.rows(reward, schema.Selection)
	if scored+unscored != trajectories {
		v.fault(FaultRows, reward[0].Key, "commits %d rows of table %s and excludes %d for %d trajectories", scored, schema.Rewards, unscored, trajectories)
	}
	if !v.loaded(resample) {
		return
	}
	selected, excluded := v.rows(resample, schema.Selection), v.excludedIn(resample)
	if selected-excluded != scored {
		v.fault(FaultRows, resample[0].Key, "commits %d rows of table %s for %d rewards, beside %d excluded trajectories", selected-excluded, schema.Selection, scored, excluded)
	}
	if skipped := excluded - unscored; skipped != 0 && (skipped < 0 || v.manifests[resample[0].Key].Note[schema.NoteExcludedShards] == "") {
		v.fault(FaultRows, resample[0].Key, "excludes %d trajectories, and the reward stage %d, though no shard was skipped", excluded, unscored)
	}
}

// checkOutputs checks that each kept trajectory of a step with the stage forward has its outputs, but for the
// masked ones, which had them once.
func (v *verifier) checkOutputs(h schema.Head) {
	forward, resample := h.Stages[schema.StageForward], h.Stages[schema.StageResample]
	if !v.loaded(forward) || !v.loaded(resample) {
		return
	}
	kept, masked := 0, 0
	for _, s := range v.manifests[resample[0].Key].ShardsOf(schema.Selection) {
		kept += v.kept[s.Key]
		masked += v.masked[s.Key]
	}
	if n := v.rows(forward, schema.TokenOutputs); n != kept && n != kept-masked {
		v.fault(FaultRows, forward[0].Key, "commits %d rows of table %s for %d kept trajectories, %d of them masked", n, schema.TokenOutputs, kept, masked)
	}
}

// excludedIn counts the excluded trajectories of the selection that manifests commit themselves.
func (v *verifier) excludedIn(stage []schema.Ref) int {
	n := 0
	for _, ref := range stage {
		for _, s := range v.manifests[ref.Key].ShardsOf(schema.Selection) {
			n += v.excluded[s.Key]
		}
	}
	return n
}

func (v *verifier) rows(stage []schema.Ref, table schema.Table) int {
	n := 0
	for _, ref := range stage {
		m := v.manifests[ref.Key]
		n += m.Rows(table)
		for _, part := range m.Parts {
			n += v.manifests[part.Key].Rows(table)
		}
	}
	return n
}

// checkPolicy checks that the step's update started from the policy that the step before left.
func (v *verifier) checkPolicy(step int, h schema.Head) {
	updates := h.Stages[schema.StageUpdate]
	if !v.loaded(updates) {
		return // an import has no policy
	}
	before := schema.AtInit(v.run, schema.StageWarmStart).ManifestKey()
	if step > 1 {
		earlier := v.heads[step-1].Stages[schema.StageUpdate]
		if len(earlier) == 0 {
			return // that head's absence is the fault
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
		return // its absence is the fault
	}
	if !slices.Contains(m.Inputs, schema.Ref{Key: before, Digest: found.digest}) {
		v.fault(FaultLineage, updates[0].Key, "does not go on from %s, the policy before the step", before)
	}
	v.checkUpdates(m, found)
}

// checkBuffer checks that the step's replay buffer goes on from that of the step before, where both steps
// have one.
func (v *verifier) checkBuffer(step int, h schema.Head) {
	now, before := h.Stages[schema.StageBuffer], v.heads[step-1].Stages[schema.StageBuffer]
	if !v.loaded(now) || !v.loaded(before) {
		return
	}
	if !slices.Contains(v.manifests[now[0].Key].Inputs, before[0]) {
		v.fault(FaultLineage, now[0].Key, "does not go on from %s, the replay buffer before the step", before[0].Key)
	}
}

// checkUpdates checks that the rows of an update name the policies before and after it.
func (v *verifier) checkUpdates(m, before committed) {
	for _, s := range m.ShardsOf(schema.Updates) {
		rows := v.updates[s.Key]
		if len(rows) == 0 || before.Checkpoint == nil {
			continue
		}
		if got := rows[0].PolicyBefore; got != before.Checkpoint.Digest {
			v.fault(FaultLineage, s.Key, "says that the update started from policy %s, and the step before left %s", got, before.Checkpoint.Digest)
		}
		if got := rows[len(rows)-1].PolicyAfter; got != m.Checkpoint.Digest {
			v.fault(FaultLineage, s.Key, "says that the update made policy %s, and %s commits %s", got, m.ManifestKey(), m.Checkpoint.Digest)
		}
	}
}
