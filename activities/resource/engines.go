package resource

import "github.com/ropewalk/ropewalk/internal/enginepool"

// Engines are the engines of one worker.
type Engines struct {
	Pool *enginepool.Pool
	// Host names this worker's host; "" if the host has no queue of its own.
	Host    string
	Scratch string // folder for checkpoints that are made
	Memory  int64  // of the machine, in bytes, if this worker runs models on it; else 0
}
