// Package temporalconf reads temporal.yaml, which says what the project needs from Temporal.
//
// A *namespace* holds the project's workflows; its *retention* is how long closed workflows stay in Temporal. A *search
// attribute* is an indexed field of a workflow. *Dynamic config* holds the server's own settings. A *queue* is a
// Temporal task queue with the tuning of the workers that poll it; queues are named after the kind of work. The
// connection (address, TLS, keys) is not part of this file: it comes from Temporal's client configuration.
package temporalconf

import "time"

// The task queues that every configuration has.
const (
	QueueCPU     = "cpu"
	QueueRollout = "rollout"
	QueueSandbox = "sandbox"
	QueueGPU     = "gpu"
)

// Config is the content of temporal.yaml. The comments in that file document the fields.
type Config struct {
	Namespace        string            `yaml:"namespace" json:"namespace"`
	Retention        time.Duration     `yaml:"retention" json:"retention"`
	SearchAttributes map[string]string `yaml:"search_attributes" json:"search_attributes"`
	DynamicConfig    map[string]any    `yaml:"dynamic_config" json:"dynamic_config"`
	Queues           Queues            `yaml:"queues" json:"queues"`
	Worker           Worker            `yaml:"worker" json:"worker"`
}

// Queues holds the tuning of each task queue.
type Queues struct {
	CPU     Queue `yaml:"cpu" json:"cpu"`
	Rollout Queue `yaml:"rollout" json:"rollout"`
	Sandbox Queue `yaml:"sandbox" json:"sandbox"`
	GPU     Queue `yaml:"gpu" json:"gpu"`
}

// Queue is how a worker polls one task queue.
type Queue struct {
	MaxConcurrentActivities int `yaml:"max_concurrent_activities" json:"max_concurrent_activities"`
	ActivityPollers         int `yaml:"activity_pollers" json:"activity_pollers"`
	// WorkflowPollers is 0 for a queue that holds no workflow tasks.
	WorkflowPollers int `yaml:"workflow_pollers" json:"workflow_pollers"`
}

// Worker tunes the worker process.
type Worker struct {
	MaxConcurrentWorkflowTasks int           `yaml:"max_concurrent_workflow_tasks" json:"max_concurrent_workflow_tasks"`
	StickyCacheSize            int           `yaml:"sticky_cache_size" json:"sticky_cache_size"`
	StopTimeout                time.Duration `yaml:"stop_timeout" json:"stop_timeout"`
	MaxHeartbeatThrottle       time.Duration `yaml:"max_heartbeat_throttle" json:"max_heartbeat_throttle"`
}

// NamedQueue is a queue with its name in Temporal.
type NamedQueue struct {
	Name string
	Queue
}

// All lists the queues in a fixed order.
func (q Queues) All() []NamedQueue {
	return []NamedQueue{
		{QueueCPU, q.CPU}, {QueueRollout, q.Rollout}, {QueueSandbox, q.Sandbox}, {QueueGPU, q.GPU},
	}
}
