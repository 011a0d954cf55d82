package temporalconf

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// fault is one violated rule: where in the file, and what.
type fault struct{ path, text string }

// SQL visibility stores offer this many columns of each type for custom search attributes.
var attributeLimit = map[string]int{
	"Keyword": 10, "Int": 3, "Double": 3, "Bool": 3, "Datetime": 3, "Text": 3, "KeywordList": 3,
}

// required are the attributes that workflows set.
var required = []struct{ name, kind string }{
	{"RunID", "Keyword"}, {"Step", "Int"}, {"Stage", "Keyword"}, {"FailureKind", "Keyword"},
	{"RunState", "Keyword"}, {"Success", "Double"}, {"RunStarted", "Datetime"},
}

var (
	namespacePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}$`)
	attributePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)
	settingPattern   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)
)

func (c Config) faults() []fault {
	var fs []fault
	add := func(path, format string, args ...any) { fs = append(fs, fault{path, fmt.Sprintf(format, args...)}) }
	if !namespacePattern.MatchString(c.Namespace) {
		add("namespace", "must be 1 to 255 letters, digits, '_', '-' or '.', got %q", c.Namespace)
	}
	// The server refuses a retention of less than a day.
	if c.Retention < 24*time.Hour {
		add("retention", "must be ≥ 24h, got %s", c.Retention)
	}
	fs = append(fs, c.attributeFaults()...)
	for _, key := range slices.Sorted(maps.Keys(c.DynamicConfig)) {
		if _, err := json.Marshal(c.DynamicConfig[key]); err != nil || !isScalar(c.DynamicConfig[key]) {
			add("dynamic_config."+key, "must be a string, number or boolean")
		}
		if !settingPattern.MatchString(key) {
			add("dynamic_config."+key, "must be a dotted name such as matching.numTaskqueueReadPartitions")
		}
	}
	for _, q := range c.Queues.All() {
		fs = append(fs, q.faults()...)
	}
	return append(fs, c.Worker.faults()...)
}

func isScalar(v any) bool {
	switch v.(type) {
	case string, bool, int, float64:
		return true
	}
	return false
}

func (c Config) attributeFaults() []fault {
	var fs []fault
	seen := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(c.SearchAttributes)) {
		path, kind := "search_attributes."+name, c.SearchAttributes[name]
		seen[kind]++
		switch limit, known := attributeLimit[kind]; {
		case !attributePattern.MatchString(name):
			fs = append(fs, fault{path, "name must be letters, digits and '_', starting with a letter"})
		case !known:
			fs = append(fs,
				fault{path, fmt.Sprintf("unknown type %q: use one of %v", kind,
					slices.Sorted(maps.Keys(attributeLimit)))})
		case seen[kind] > limit:
			fs = append(fs, fault{path, fmt.Sprintf("at most %d attributes may be of type %s", limit, kind)})
		}
	}
	for _, r := range required {
		if got := c.SearchAttributes[r.name]; got != r.kind {
			fs = append(fs, fault{"search_attributes." + r.name, fmt.Sprintf("must be %s, got %q", r.kind, got)})
		}
	}
	return fs
}

func (q NamedQueue) faults() []fault {
	p := "queues." + q.Name + "."
	fs := slices.Concat(
		atLeast(p+"max_concurrent_activities", q.MaxConcurrentActivities, 1),
		atLeast(p+"activity_pollers", q.ActivityPollers, 1),
		atLeast(p+"workflow_pollers", q.WorkflowPollers, 0))
	// A worker splits its workflow pollers between the shared queue and its own sticky one.
	if q.WorkflowPollers == 1 || (q.Name == QueueCPU && q.WorkflowPollers < 2) {
		fs = append(fs, fault{p + "workflow_pollers", fmt.Sprintf("must be ≥ 2 where workflows are polled, got %d",
			q.WorkflowPollers)})
	}
	return fs
}

func (w Worker) faults() []fault {
	return slices.Concat(
		atLeast("worker.max_concurrent_workflow_tasks", w.MaxConcurrentWorkflowTasks, 2),
		atLeast("worker.sticky_cache_size", w.StickyCacheSize, 0),
		atLeast("worker.stop_timeout", w.StopTimeout, 0),
		atLeast("worker.max_heartbeat_throttle", w.MaxHeartbeatThrottle, time.Second))
}

func atLeast[T cmp.Ordered](path string, got, least T) []fault {
	if got >= least {
		return nil
	}
	return []fault{{path, fmt.Sprintf("must be ≥ %v, got %v", least, got)}}
}

// SearchAttributeFlags returns the attributes as NAME=TYPE in the order of their names.
func (c Config) SearchAttributeFlags() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.SearchAttributes)) {
		out = append(out, name+"="+c.SearchAttributes[name])
	}
	return out
}

// DynamicConfigFlags returns the settings as KEY=JSON in the order of their keys.
func (c Config) DynamicConfigFlags() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(c.DynamicConfig)) {
		value, _ := json.Marshal(c.DynamicConfig[key]) // validated, so it can be encoded
		out = append(out, key+"="+string(value))
	}
	return out
}
