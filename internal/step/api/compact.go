package api

// CompactInput asks to merge the small shards of a step that is done. All measured times of the step are recorded.
type CompactInput struct {
	Scope
}

// Compacted is the result of a compaction.
type Compacted struct {
	Tables int    `json:"tables"` // merged
	Shards int    `json:"shards"` // that were merged
	Timing Timing `json:"timing"`
}
