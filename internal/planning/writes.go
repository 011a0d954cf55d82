package planning

import (
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/recipes"
)

// Writes is what a run writes, in bytes.
type Writes struct {
	// Rows is what a step's tables take on the object store at most, if every trajectory fills its budgets.
	Rows int64 `json:"rows_per_step"`
	// Checkpoint is what a step's checkpoints of policy and critic take there, with their optimiser.
	Checkpoint int64 `json:"checkpoint"`
	// Base is what is stored once: the model that the run starts from, or the base of an adapter.
	Base int64 `json:"base"`
	// Kept is how many checkpoints are on the store at most, the one that is being written included.
	Kept int `json:"checkpoints_kept"`
	// Run is what the store holds at the end of the run at most, without evaluations.
	Run int64 `json:"run"`
	// Folders are the servers' folders of weights.
	Folders []Folder `json:"folders,omitempty"`
}

// Folder is a folder to which the worker writes new weights for servers.
type Folder struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"` // of two versions: the one in use, and the next while it is written
}

// weightBytes are the bytes of one number of a checkpoint: of a weight, or of a state of the optimiser.
const weightBytes = 4

// CheckpointBytes returns the bytes of one checkpoint without headers, configuration and tokenizer: 4 for each weight,
// and for each state that the optimiser keeps of a trained number. With an adapter the base is stored once, and a
// checkpoint holds the adapter alone. A critic has a checkpoint of its own, with a value head of hidden numbers.
func CheckpointBytes(r *recipes.Recipe, m plan.Model) (each, base int64) {
	own, trained := m.Params, weightBytes*int64(1+r.Optimizer.States())
	if a := Adapter(r.Engine); a != nil {
		own = m.AdapterParams(*a)
		base = weightBytes * m.Params
	}
	each = trained * own
	if r.Outputs().Values {
		each += trained * (own + int64(m.Hidden))
	}
	if base == 0 && r.Policy.Checkpoint != "" {
		base = weightBytes * m.Params
	}
	return each, base
}

// LargestFile returns the bytes of the largest file of a run's checkpoints, without its header, and the recipe field
// that determines it. A critic has the policy's tensors plus a value head.
func LargestFile(r *recipes.Recipe, shape checkpoint.Shape) (field string, bytes int64) {
	shape.ValueHead = r.Loss.Value() != nil
	m := plan.Of(shape)
	trained, of := m.Params, "policy"
	if a := Adapter(r.Engine); a != nil {
		trained, of = m.AdapterParams(*a), "engine.lora"
	}
	weights, states := weightBytes*m.Params, weightBytes*int64(r.Optimizer.States())*trained
	if weights > states {
		return "policy", weights
	}
	return of, states
}

// Bytes of a token in the tables of the record before compression. Texts are counted with textBytes a token.
const (
	textBytes  = 4
	turnBytes  = 4 + 4 + 4 + 1 + 2*textBytes // ids, log-probabilities, entropies, mask; texts of turn and trajectory
	callBytes  = 2 * textBytes               // what a call was given and what it returned, where it is stored twice
	batchBytes = 4 + 1 + 4 + 4               // ids, mask, old log-probabilities, advantages
	outBytes   = 4                           // each output of stage logprobs, in its own table and again in the batch
	heldBytes  = 4 + 1 + 4                   // ids, mask and log-probabilities of a replayed row
	rowBytes   = 1024                        // identities, statistics and verdicts of a row over all tables
)

// RowBytes returns the bytes of a step's tables if every budget is full: for each sampled token its columns in turns
// and its text in turns and trajectories; for each token that was read also its text in tool_calls; for each learnt
// token its columns in the batch, and each output of stage logprobs twice. The tables are compressed, which is not
// counted, because it depends on the texts: the estimate is an upper bound.
func RowBytes(r *recipes.Recipe) int64 {
	most, rows := rowOf(r, 1)
	sampled := float64(r.Rollout.Prompts*r.Rollout.SamplesPerPrompt) * rows
	kept := float64(learnt(r)) * rows
	perKept := float64(batchBytes)
	o := r.Outputs()
	for _, asked := range []bool{o.OldLogProbs, o.Entropies, o.Reference, o.Values, o.Values} {
		if asked {
			perKept += 2 * outBytes
		}
	}
	bytes := sampled*(most.whole()*turnBytes+most.read*callBytes+rowBytes) + kept*(most.whole()*perKept+rowBytes)
	if r.Replay != nil {
		bytes += float64(r.Replay.Size) * rows * (most.whole()*heldBytes + rowBytes)
	}
	return int64(bytes)
}

func writes(r *recipes.Recipe, m plan.Model) Writes {
	out := Writes{Rows: RowBytes(r), Kept: keptCheckpoints(r)}
	out.Checkpoint, out.Base = CheckpointBytes(r, m)
	out.Run = int64(r.Steps)*out.Rows + int64(out.Kept)*out.Checkpoint + out.Base
	if r.Record.Compact {
		out.Run += int64(r.Steps) * out.Rows
	}
	for _, s := range r.Engine.Servers {
		if s.Folder != "" {
			out.Folders = append(out.Folders, Folder{Path: s.Folder, Bytes: 2 * serverWidth(s) * serverParams(s, m)})
		}
	}
	return out
}

// keptCheckpoints counts the checkpoints that the store holds at most: every Nth for good, the newest, the best, and
// the one that is being written.
func keptCheckpoints(r *recipes.Recipe) int {
	n := max(r.Checkpoint.KeepLast, 1+r.Staleness()) + r.Checkpoint.KeepBest + 1
	if r.Checkpoint.Every > 0 {
		n += r.Steps / r.Checkpoint.Every
	}
	return min(n, r.Steps+1)
}
