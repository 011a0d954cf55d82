package api

// RoomInput asks a worker of a task queue what it has room for.
type RoomInput struct{ Scope }

// Room is what a worker of a task queue has room for.
type Room struct {
	Host   string `json:"host"`
	Shards int    `json:"shards"` // at once
	Capacity
}

// ObserveInput asks how fast the shards on each task queue go on that the asking workflow runs.
type ObserveInput struct{ Scope }

// Observed is what the heartbeats of a workflow's running shards say, for each task queue that has any.
type Observed struct {
	Queues []ObservedQueue `json:"queues,omitempty"`
}

// ObservedQueue sums up the running shards of one task queue.
type ObservedQueue struct {
	Queue  string `json:"queue"`
	Shards int    `json:"shards"` // with a heartbeat
	// PerToken is how many seconds a shard takes for a token, on average over those that have sampled any; 0 = none
	// has.
	PerToken float64 `json:"per_token,omitempty"`
}
