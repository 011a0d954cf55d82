package schema

// The roles of a trajectory in a tree of samples.
const (
	RoleMonitor = "monitor"
	RoleRoot    = "root"
	RoleBranch  = "branch"
)

// BranchRow is one turn of a tree of samples (table branches): where its trajectory starts, and whether other
// trajectories branched from it. Only runs with rollout.tree have the table. A branch shares its parent's earlier
// turns. Those are stored once, under the trajectory that wrote them (see Inherit).
type BranchRow struct {
	GroupID      string   `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string   `parquet:"trajectory_id" doc:"the trajectory that wrote the turn"`
	Turn         int32    `parquet:"turn" doc:"number of the turn, from 0"`
	Role         string   `parquet:"role,dict" doc:"what the trajectory is: root (it starts at the prompt), branch (it starts in the middle of another) or monitor (it starts at the prompt, is measured only, and is no trajectory of the group)"`
	Parent       *string  `parquet:"parent,optional,dict" doc:"at a branch's first turn of its own, the trajectory whose turns before this one it shares; else null"`
	Shared       *int32   `parquet:"shared,optional" unit:"tokens" doc:"how many tokens these turns have, contexts included; null where parent is"`
	Entropy      *float64 `parquet:"entropy,optional,split" unit:"nats" doc:"the entropy of the response's first tokens, by rollout.tree.entropy; null if there is no response"`
	Change       *float64 `parquet:"change,optional,split" doc:"that entropy less the one of the trajectory's first response, divided as rollout.tree.scale says; null where nothing was decided: at turn 0, at a branch's first turn, after a summary, or without a response"`
	Base         *float64 `parquet:"base,optional,split" doc:"what the probability starts from: a random number in [0, 1), or the recipe's; null where change is, and where no branch was left in the budget"`
	Probability  *float64 `parquet:"probability,optional,split" doc:"what is compared with the threshold; null where base is"`
	Streak       int32    `parquet:"streak" doc:"how many of the trajectory's latest decisions in a row, this one included, opened a branch"`
	Copies       int32    `parquet:"copies" doc:"branches that were opened before this turn"`
}

// Validate implements Row.
func (r BranchRow) Validate() error {
	var c checks
	c.trajectory(r.GroupID, r.TrajectoryID)
	c.count("turn", int64(r.Turn))
	c.oneOf("role", r.Role, RoleMonitor, RoleRoot, RoleBranch)
	c.countOrNull("shared", r.Shared)
	switch {
	case (r.Parent == nil) != (r.Shared == nil):
		c.fail("shared", "must be null exactly where parent is null")
	case r.Parent != nil && r.Role != RoleBranch:
		c.fail("parent", "must be null for a %s", r.Role)
	case r.Parent != nil && r.Turn == 0:
		c.fail("parent", "must be null at turn 0, where nothing is shared")
	case r.Parent != nil && (*r.Parent >= r.TrajectoryID || len(*r.Parent) <= len(r.GroupID) ||
		(*r.Parent)[:len(r.GroupID)] != r.GroupID):
		c.fail("parent", "must be an earlier trajectory of group %s, got %q", r.GroupID, *r.Parent)
	}
	c.finiteOrNull("entropy", r.Entropy)
	c.finiteOrNull("change", r.Change)
	c.shareOrNull("base", r.Base)
	c.shareOrNull("probability", r.Probability)
	c.count("streak", int64(r.Streak))
	c.count("copies", int64(r.Copies))
	if r.Copies > 0 && r.Probability == nil {
		c.fail("copies", "must be 0 where nothing was decided, got %d", r.Copies)
	}
	return c.err
}

// Position implements Row.
func (r BranchRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID, r.Turn) }

// OfTurn is a row that belongs to a turn: a TurnRow, a ToolCallRow or a TransitionRow.
type OfTurn[R any] interface {
	Row
	// turnOf returns the trajectory and the turn of the row.
	turnOf() (string, int32)
	// under returns the row as one of another trajectory of the group.
	under(trajectory string) R
}

func (r TurnRow) turnOf() (string, int32)       { return r.TrajectoryID, r.Turn }
func (r ToolCallRow) turnOf() (string, int32)   { return r.TrajectoryID, r.Turn }
func (r TransitionRow) turnOf() (string, int32) { return r.TrajectoryID, r.Turn }

func (r TurnRow) under(trajectory string) TurnRow {
	r.TrajectoryID = trajectory
	return r
}

func (r ToolCallRow) under(trajectory string) ToolCallRow {
	r.TrajectoryID = trajectory
	return r
}

func (r TransitionRow) under(trajectory string) TransitionRow {
	r.TrajectoryID = trajectory
	return r
}

// Inherit returns the rows with those that branches share with their parents, each under the branch's own id, so that
// every trajectory is whole. The rows of a shared turn share their lists: do not change them. Without branches it
// returns the rows themselves.
func Inherit[R OfTurn[R]](rows []R, branches []BranchRow) []R {
	tree := LineageOf(branches)
	if len(tree) == 0 {
		return rows
	}
	of := map[string][]R{}
	for _, r := range rows {
		id, _ := r.turnOf()
		of[id] = append(of[id], r)
	}
	out := rows[:len(rows):len(rows)]
	for _, b := range branches {
		if b.Parent == nil {
			continue
		}
		for _, s := range tree.Shared(b.TrajectoryID) {
			for _, r := range of[s.Owner] {
				if _, turn := r.turnOf(); turn >= s.From && turn < s.To {
					out = append(out, r.under(b.TrajectoryID))
				}
			}
		}
	}
	return out
}

// Lineage says where each branch of a step leaves its parent.
type Lineage map[string]Fork

// Fork is a branch's parent, and the first turn that it does not share with it.
type Fork struct {
	Parent string
	Turn   int32
}

// LineageOf returns the lineage of rows. It is empty without branches.
func LineageOf(branches []BranchRow) Lineage {
	out := Lineage{}
	for _, b := range branches {
		if b.Parent != nil {
			out[b.TrajectoryID] = Fork{Parent: *b.Parent, Turn: b.Turn}
		}
	}
	return out
}

// SharedTurns are the turns [From, To) that a branch has from the trajectory that wrote them.
type SharedTurns struct {
	Owner    string
	From, To int32
}

// Shared lists the turns of a trajectory that others wrote, the latest first; none for a root.
func (l Lineage) Shared(trajectory string) []SharedTurns {
	var out []SharedTurns
	end, known := int32(0), false
	for at := trajectory; ; {
		f, branches := l[at]
		if !branches || f.Parent >= at { // a parent is always earlier, which bounds the walk
			return out
		}
		if !known || f.Turn < end {
			end, known = f.Turn, true
		}
		from := int32(0)
		if next, further := l[f.Parent]; further {
			from = min(next.Turn, end)
		}
		if from < end {
			out = append(out, SharedTurns{Owner: f.Parent, From: from, To: end})
		}
		at, end = f.Parent, from
	}
}

// Owner returns the trajectory that wrote a turn of a trajectory: the trajectory itself or one that it branches from.
func (l Lineage) Owner(trajectory string, turn int32) string {
	for _, s := range l.Shared(trajectory) {
		if turn >= s.From && turn < s.To {
			return s.Owner
		}
	}
	return trajectory
}
