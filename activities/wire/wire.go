// Package wire holds the parameters and results of every activity: references and small
// statistics, never rows. It is what workflows and activities agree on.
//
// Glossary. A *scope* says which stage of which step of which run an activity works for. A
// *ref* names a committed manifest by key and digest. A *policy ref* names the manifest that
// committed a checkpoint. A *timing* is one activity's measured interval, for the timings table.
package wire

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/schema"
)

// InitStep is the step number of run-level stages (prepare, warm start, import).
const InitStep = -1

// Scope says where an activity's output belongs.
type Scope struct {
	Run    string     `json:"run"`
	Step   int        `json:"step"` // InitStep for run-level stages
	Gen    int        `json:"gen"`
	Config schema.Ref `json:"config"` // the manifest of PrepareRun: resolved recipe and code digest
}

// PolicyRef names a committed checkpoint.
type PolicyRef struct {
	Manifest schema.Ref `json:"manifest"` // the manifest that holds the checkpoint's file list
	Digest   string     `json:"digest"`   // checkpoint digest
	Step     int        `json:"step"`     // the step whose update made it; 0 for the warm start
}

// Timing is one activity execution as it was measured. Times are Unix microseconds.
type Timing struct {
	Stage   string  `json:"stage"`
	Shard   int     `json:"shard"`
	Turn    int     `json:"turn"`
	Start   int64   `json:"start"`
	End     int64   `json:"end"`
	Queue   float64 `json:"queue"` // seconds between scheduling and start
	CPU     float64 `json:"cpu"`   // seconds, where the stage measures it
	Attempt int     `json:"attempt"`
	Host    string  `json:"host"`
	Rows    int64   `json:"rows"`
	Tokens  int64   `json:"tokens"`
	// Device is what the stage used of devices; nil where its engine measures nothing.
	Device *DeviceUse `json:"device,omitempty"`
}

// DeviceUse is what a stage used of its engine's devices.
type DeviceUse struct {
	PeakBytes    int64    `json:"peak_bytes,omitempty"` // most memory held on one device, 0 where it has none of its own
	Utilisation  *float64 `json:"utilisation,omitempty"`
	MFU          *float64 `json:"mfu,omitempty"` // model flops over what the devices can do at most
	TokensPerSec *float64 `json:"tokens_per_s,omitempty"`
}

// String is the use for people: what is known of it.
func (d *DeviceUse) String() string {
	var parts []string
	add := func(format string, x float64) { parts = append(parts, fmt.Sprintf(format, x)) }
	if d.TokensPerSec != nil {
		add("%.0f tokens/s", *d.TokensPerSec)
	}
	if d.MFU != nil {
		add("MFU %.1f%%", 100**d.MFU)
	}
	if d.Utilisation != nil {
		add("busy %.0f%%", 100**d.Utilisation)
	}
	if d.PeakBytes > 0 {
		add("%.1f GiB at most", float64(d.PeakBytes)/(1<<30))
	}
	return strings.Join(parts, ", ")
}

// Done is what every stage activity returns.
type Done struct {
	Manifest schema.Ref `json:"manifest"`
	Adopted  bool       `json:"adopted,omitempty"` // an earlier attempt had committed already
	// Home is the host whose engine has done it and holds what it left; "" where none is known.
	Home   string `json:"home,omitempty"`
	Timing Timing `json:"timing"`
}

// Plan is what a workflow needs to know of the resolved recipe.
type Plan struct {
	Recipe        string  `json:"recipe"`
	Seed          uint64  `json:"seed"`
	Steps         int     `json:"steps"`
	Shards        int     `json:"shards"`
	MaxTurns      int     `json:"max_turns"`
	EvaluateEvery int     `json:"evaluate_every"`
	SandboxWall   float64 `json:"sandbox_wall"` // seconds, the longest one call may take
	BatchRows     int     `json:"batch_rows"`   // trajectories sampled a step
	// Chain names, for people, what the stage resample runs in its order.
	Chain string `json:"chain,omitempty"`
	// Dynamic: the step is sampled in rounds.
	Dynamic *Dynamic `json:"dynamic,omitempty"`
	// Grade: the stage grade runs, for the recipe asks for symbolic grading.
	Grade bool `json:"grade,omitempty"`
	// Forward: the stage forward runs, for the recipe needs outputs that the rollout does not give.
	Forward bool `json:"forward,omitempty"`
	// Replay: the stage buffer runs, for the recipe learns from earlier trajectories again.
	Replay bool `json:"replay,omitempty"`
	// Hosts share the run's models, where there are several.
	Hosts int `json:"hosts,omitempty"`
}

// Dynamic is what a step needs to know of dynamic sampling. Each round has Plan.Shards shards.
type Dynamic struct {
	Target    int `json:"target"` // informative groups
	Tries     int `json:"tries"`  // rounds at most
	ColdStart int `json:"cold_start,omitempty"`
}

// Enough reports whether a step that has sampled so many rounds, with so many informative groups
// among them, samples no further one. Steps count from 1.
func (d Dynamic) Enough(step, rounds, informative int) bool {
	return rounds >= d.Tries || step <= d.ColdStart || informative >= d.Target
}

// PrepareInput asks for a run's recipe to be resolved, validated and committed.
type PrepareInput struct {
	Run        string   `json:"run"`
	Kind       string   `json:"kind"`             // train | reprocess
	Format     string   `json:"format,omitempty"` // of what is reprocessed
	Recipe     string   `json:"recipe,omitempty"`
	RecipeYAML string   `json:"recipe_yaml,omitempty"`
	RecipeFile string   `json:"recipe_file,omitempty"`
	Overrides  []string `json:"overrides,omitempty"`
	Seed       *uint64  `json:"seed,omitempty"`
	Steps      *int     `json:"steps,omitempty"`
	Resume     bool     `json:"resume,omitempty"`
}

// Prepared is a validated run.
type Prepared struct {
	Done
	Plan Plan `json:"plan"`
	// NextStep is the first step without a head; Policy the checkpoint it starts from (nil at step 1).
	NextStep int        `json:"next_step"`
	Policy   *PolicyRef `json:"policy,omitempty"`
	// Buffer is the replay buffer that step NextStep goes on with; zero where it is empty.
	Buffer schema.Ref `json:"buffer,omitzero"`
	// Machine is what this worker computes with.
	Machine machine.Machine `json:"machine"`
	// Amendments are the changes of the recipe that the run has committed, in the order made.
	Amendments []Amendment `json:"amendments,omitempty"`
}

// Amendment is a change of a run's recipe: the manifest that holds the recipe as changed, and
// the step from which it holds.
type Amendment struct {
	Manifest schema.Ref `json:"manifest"`
	Plan     Plan       `json:"plan"`
	From     int        `json:"from"`
	// Gen is the generation at which step From is taken again with the change; 0 where it is new.
	Gen int `json:"gen,omitempty"`
}

// AmendInput asks for the run's next amendment.
type AmendInput struct {
	Run    string     `json:"run"`
	Config schema.Ref `json:"config"` // the manifest of the recipe as it is
	Number int        `json:"number"` // how many amendments there are
	From   int        `json:"from"`
	Anew   bool       `json:"anew,omitempty"` // step From is taken again, in a generation that nothing else has
	Set    []string   `json:"set"`            // path=value
}

// Amended is the committed amendment.
type Amended struct {
	Done
	Amendment Amendment `json:"amendment"`
}

// WarmStarted is the cloned policy.
type WarmStarted struct {
	Done
	Policy  PolicyRef `json:"policy"`
	Reused  bool      `json:"reused"`  // another run had made it
	Loss    float64   `json:"loss"`    // of the last optimiser step, nats a token
	Correct float64   `json:"correct"` // share of demonstrations that end right
}

// PromptsInput asks for a step's prompts, or those of one round of its dynamic sampling.
type PromptsInput struct {
	Scope
	Round *int `json:"round,omitempty"` // from 0; absent where the step samples once
}

// GenerateInput asks for one turn of one shard.
type GenerateInput struct {
	Scope
	Shard   int          `json:"shard"`
	Turn    int          `json:"turn"`
	Prompts schema.Ref   `json:"prompts"`
	Turns   []schema.Ref `json:"turns"` // earlier turns of this shard
	Tools   []schema.Ref `json:"tools"` // their tool calls
	Policy  PolicyRef    `json:"policy"`
}

// Generated counts one turn of one shard.
type Generated struct {
	Done
	Calls  int   `json:"calls"`  // tool calls waiting for results
	Tokens int64 `json:"tokens"` // generated
	// Excluded counts the trajectories that ended here because the engine broke on them.
	Excluded int `json:"excluded,omitempty"`
}

// ToolsInput asks for the tool calls of one turn of one shard.
type ToolsInput struct {
	Scope
	Shard   int          `json:"shard"`
	Turn    int          `json:"turn"`
	Prompts schema.Ref   `json:"prompts"`
	Turns   []schema.Ref `json:"turns"` // of this shard, the turn whose calls are to run last
	Tools   []schema.Ref `json:"tools"` // calls of earlier turns
}

// ToolsDone counts verdicts.
type ToolsDone struct {
	Done
	Calls  int `json:"calls"`
	Failed int `json:"failed"`
	// Excluded counts the trajectories that ended here because the sandbox broke on a call of theirs.
	Excluded int `json:"excluded,omitempty"`
}

// AssembleInput asks for one shard's episodes.
type AssembleInput struct {
	Scope
	Shard   int          `json:"shard"`
	Prompts schema.Ref   `json:"prompts"`
	Turns   []schema.Ref `json:"turns"`
	Tools   []schema.Ref `json:"tools"`
}

// GradeInput asks for the symbolic verdicts on one shard's answers.
type GradeInput struct {
	Scope
	Shard        int        `json:"shard"`
	Trajectories schema.Ref `json:"trajectories"`
}

// Graded counts one shard's symbolic verdicts.
type Graded struct {
	Done
	Asked int `json:"asked"` // trajectories
	Pairs int `json:"pairs"` // different ones among them, each a call
	Equal int `json:"equal"` // trajectories
	// Excluded counts the trajectories whose call gave no verdict.
	Excluded int `json:"excluded,omitempty"`
}

// ScoreInput asks for one shard's rewards.
type ScoreInput struct {
	Scope
	Shard        int        `json:"shard"`
	Trajectories schema.Ref `json:"trajectories"`
	Gradings     schema.Ref `json:"gradings,omitzero"` // where the recipe asks for symbolic grading
}

// Scored sums one shard's rewards.
type Scored struct {
	Done
	Trajectories int     `json:"trajectories"` // with a reward: means are over these
	RewardSum    float64 `json:"reward_sum"`
	Successes    int     `json:"successes"`
	// ToolCalls and ToolErrors over trajectories with a positive reward (spec I5).
	PositiveCalls  int   `json:"positive_calls"`
	PositiveErrors int   `json:"positive_errors"`
	ToolCalls      int   `json:"tool_calls"`
	Tokens         int64 `json:"tokens"`
	// Agreed and Compared count imported rows whose own verdict ours was compared with.
	Agreed   int `json:"agreed"`
	Compared int `json:"compared"`
	// Excluded counts the shard's trajectories without a reward, wherever they were excluded.
	Excluded int `json:"excluded,omitempty"`
	// Informative counts the groups whose rewards are not all equal, where the step samples in rounds.
	Informative int `json:"informative,omitempty"`
}

// StageParts lists the shard manifests that make one stage.
type StageParts struct {
	Stage string       `json:"stage"`
	Turn  int          `json:"turn"` // −1 where the stage has no turns
	Parts []schema.Ref `json:"parts"`
}

// CommitInput asks for stage manifests, and for the step's head where Head is set.
type CommitInput struct {
	Scope
	Stages []StageParts `json:"stages"`
	Head   []StageRef   `json:"head,omitempty"`
}

// StageRef is one stage manifest of a step.
type StageRef struct {
	Stage string     `json:"stage"`
	Ref   schema.Ref `json:"ref"`
}

// Committed returns the stage manifests in the order asked for.
type Committed struct {
	Done
	Refs []schema.Ref `json:"refs"`
}

// ResampleInput asks which trajectories are kept.
type ResampleInput struct {
	Scope
	Rewards schema.Ref `json:"rewards"` // stage manifest
	// Excluded are the shards whose parts the rewards lack. Prompts, the step's prompts, say which
	// trajectories those are; it is read where Excluded holds any, and may be left out elsewhere.
	Excluded []ExcludedShard `json:"excluded,omitempty"`
	Prompts  schema.Ref      `json:"prompts,omitzero"`
}

// ExcludedShard is a shard of a step that failed for good and was skipped.
type ExcludedShard struct {
	Shard  int    `json:"shard"`
	Stage  string `json:"stage"`  // that failed
	Reason string `json:"reason"` // the failure's text
}

// Resampled counts groups and rows.
type Resampled struct {
	Done
	Kept          int            `json:"kept"` // trajectories
	Dropped       int            `json:"dropped"`
	KeptGroups    int            `json:"kept_groups"`
	DroppedGroups int            `json:"dropped_groups"`
	Reasons       map[string]int `json:"reasons"` // trajectories by reason; schema.ReasonExcluded counts the excluded
	// Masked counts the kept trajectories whose tokens are out of the loss, by reason.
	Masked map[string]int `json:"masked,omitempty"`
}

// ForwardInput asks for the token outputs of the trajectories of one shard that were kept.
type ForwardInput struct {
	Scope
	Shard     int          `json:"shard"`
	Turns     []schema.Ref `json:"turns"` // shard manifests of the rollout, one a turn
	Selection schema.Ref   `json:"selection"`
	// Policy is the one that the update starts from; its manifest names the critic too, where the run
	// trains one. The reference policy is found in the record.
	Policy PolicyRef `json:"policy"`
}

// Forwarded counts the outputs.
type Forwarded struct {
	Done
	Rows   int   `json:"rows"`
	Tokens int64 `json:"tokens"` // with loss
}

// AdvantageInput asks for the training batch.
type AdvantageInput struct {
	Scope
	Turns     []schema.Ref `json:"turns"` // stage manifests, one a turn
	Rewards   schema.Ref   `json:"rewards"`
	Selection schema.Ref   `json:"selection"`
	Outputs   schema.Ref   `json:"outputs,omitzero"` // stage manifest of forward, where the step has one
}

// Advantages counts the batch.
type Advantages struct {
	Done
	Rows   int   `json:"rows"`
	Tokens int64 `json:"tokens"` // with loss
}

// BufferInput asks for the replay buffer after a step.
type BufferInput struct {
	Scope
	Previous schema.Ref `json:"previous,omitzero"` // the buffer after the step before; zero where it is empty
	Rewards  schema.Ref `json:"rewards"`
	Batch    schema.Ref `json:"batch"`
}

// Buffered counts the replay buffer after a step.
type Buffered struct {
	Done
	Size      int `json:"size"`   // trajectories
	Stored    int `json:"stored"` // that entered in this step
	Baselines int `json:"baselines"`
	// Consumed: the buffer was full, so it was judged again and emptied, and Imitated of its trajectories
	// are the step's replay batch.
	Consumed     bool    `json:"consumed,omitempty"`
	Imitated     int     `json:"imitated,omitempty"`
	P50          float64 `json:"p50"`                    // median of the baselines
	Recalibrated float64 `json:"recalibrated,omitempty"` // mean Ã of those imitated
}

// UpdateInput asks for one policy update.
type UpdateInput struct {
	Scope
	Batch  schema.Ref `json:"batch"`
	Policy PolicyRef  `json:"policy"`
	Buffer schema.Ref `json:"buffer,omitzero"` // the step's replay buffer, where the recipe has one
}

// Updated reports the update: means over its optimiser steps, those on the replay batch aside.
type Updated struct {
	Done
	Policy       PolicyRef `json:"policy"`
	Loss         float64   `json:"loss"`
	KL           float64   `json:"kl"`
	Entropy      float64   `json:"entropy"`
	ClipFraction float64   `json:"clip_fraction"`
	GradNorm     float64   `json:"grad_norm"`
	Drift        float64   `json:"drift"` // largest |log-probability now − old| before the first step
	// ReferenceKL is the estimated divergence from the reference, where the loss takes one.
	ReferenceKL *float64 `json:"reference_kl,omitempty"`
	Tokens      int64    `json:"tokens"`
	// Advantages are those that the update learnt from; nil where it had nothing to learn from.
	Advantages *schema.Advantages `json:"advantages,omitempty"`
	// Critic is the critic's part of the update, where there is one.
	Critic *schema.CriticFigures `json:"critic,omitempty"`
	// Gamma is the weight of the imitation, where the recipe has one.
	Gamma *float64 `json:"gamma,omitempty"`
}

// PublishInput asks the rollout engine to serve a checkpoint, and for the step's head.
type PublishInput struct {
	Scope
	Policy PolicyRef  `json:"policy"`
	Stages []StageRef `json:"stages"` // what the step's head names
}

// Published reports which checkpoints were pruned.
type Published struct {
	Done
	Pruned []int `json:"pruned,omitempty"` // steps
}

// EvaluateInput asks for an evaluation on held-out problems.
type EvaluateInput struct {
	Scope
	Policy PolicyRef `json:"policy"`
	Tag    string    `json:"tag"` // warm_start | step | final
}

// Rate is a success rate with its bootstrap 95% interval over problems.
type Rate struct {
	Success float64 `json:"success"`
	CILow   float64 `json:"ci_low"`
	CIHigh  float64 `json:"ci_high"`
	N       int     `json:"n"` // problems
}

// EvaluationSummary is one evaluation's outcome.
type EvaluationSummary struct {
	Rate
	Greedy float64 `json:"greedy"`
	// ByLevel is keyed by the level's number.
	ByLevel                map[string]Rate `json:"by_level"`
	ToolErrorRatePositives float64         `json:"tool_error_rate_positives"`
	Trajectories           int             `json:"trajectories"`
	ToolCalls              int             `json:"tool_calls"`
	Tokens                 int64           `json:"tokens"`
}

// Evaluated is an evaluation and where it lies.
type Evaluated struct {
	Done
	Summary EvaluationSummary `json:"summary"`
}

// RecordTimingsInput carries a step's measured intervals to the timings table.
type RecordTimingsInput struct {
	Scope
	Timings []Timing `json:"timings"`
	// Part separates a step's own timings from those of the run beside it.
	Part string `json:"part"` // step | run
}

// ImportInput asks for foreign solutions to become committed turns.
type ImportInput struct {
	Scope
	Format string `json:"format"` // gsm8k-solutions | openai
	Source string `json:"source"` // key of the uploaded file
	Digest string `json:"digest"` // of the uploaded file
}

// ImportedShard is one shard of imported prompts, turns and trajectories: the shard's manifest of
// the rollout stage, turn 0, holds all three.
type ImportedShard struct {
	Manifest schema.Ref `json:"manifest"`
	Calls    int        `json:"calls"`
}

// Imported lists the shards.
type Imported struct {
	Done
	Shards       []ImportedShard `json:"shards"`
	Trajectories int             `json:"trajectories"`
	Calls        int             `json:"calls"`
}

// AgreementInput asks how tool results compare with what the source wrote.
type AgreementInput struct {
	Scope
	Tools  []schema.Ref `json:"tools"`
	Source string       `json:"source"`
	Digest string       `json:"digest"`
}

// Agreement compares the calculator with the source's annotations.
type Agreement struct {
	Done
	Compared int `json:"compared"`
	Agreed   int `json:"agreed"`
}
