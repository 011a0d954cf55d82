// Package grants says what workers without credentials may ask of the store: the policies of presigners, by queue.
package grants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store/presigned"
	"github.com/ropewalk/ropewalk/store/s3"
)

// Groups of operations. A large object is put in parts, and looked at before and after.
var (
	reading = []s3.Operation{s3.OpGet, s3.OpHead}
	putting = []s3.Operation{s3.OpPut, s3.OpHead, s3.OpBeginUpload, s3.OpPutPart, s3.OpListParts, s3.OpListUploads,
		s3.OpCompleteUpload, s3.OpAbortUpload}
	committing = []s3.Operation{s3.OpPutIfAbsent}
)

// callTimings is the stage of the measured times of calls. Its manifests lie next to those of the calls.
const callTimings = "timings_calls"

// SandboxQueue is what workers of the queue sandbox may do. It follows from the declarations of the queue's stages:
// they read the record without the weights, and write the manifests, signatures and tables of their own stages. They
// list and delete nothing of the record.
func SandboxQueue() presigned.Policy {
	own, tables := []string{callTimings}, []schema.Table{schema.Timings}
	for _, stage := range stages.All() {
		if slices.ContainsFunc(stage.Activities, func(a stages.Activity) bool { return a.Queue == stages.Sandbox }) {
			own, tables = append(own, stage.Name), append(tables, stage.Writes...)
		}
	}
	slices.Sort(own)
	slices.Sort(tables)
	manifest := func(key string) bool {
		place, err := schema.ParseManifestKey(key)
		return err == nil && place.Warm == "" && slices.Contains(own, place.Stage)
	}
	return presigned.Policy{
		{Operations: reading, Keys: "`runs/`, `warmstarts/`; of checkpoints only `*.json` and `*.jinja`, no weights",
			For: "inputs of stages: manifests, tables, tokenizers", Match: isReadable},
		{Operations: putting, Keys: "`runs/run=*/table=T/`, T: " + quoted(tables), For: "their rows",
			Match: func(key string) bool {
				d, err := schema.ParseDataKey(key)
				return err == nil && d.Warm == "" && !d.Compact && slices.Contains(tables, d.Table)
			}},
		{Operations: committing, Keys: "`runs/run=*/manifests/*/S/`, S: " + quoted(own), For: "their manifests",
			Match: manifest},
		{Operations: []s3.Operation{s3.OpPut}, Keys: "`runs/run=*/signatures/` of these manifests",
			For: "their signatures", Match: func(key string) bool {
				document, is := schema.SignedDocument(key)
				return is && manifest(document)
			}},
		{Operations: committing, Keys: "`runs/run=*/calls/`", For: "notes of tool calls that must not run twice",
			Match: schema.IsCallNote},
		{Operations: []s3.Operation{s3.OpGet, s3.OpPut, s3.OpPutIfAbsent}, Keys: "`format/`",
			For: "start: the format's description, and the program", Match: under(schema.SpecificationPrefix)},
		{Operations: []s3.Operation{s3.OpGet, s3.OpPutIfAbsent, s3.OpDelete}, Keys: "`.ropewalk-probe/`",
			For: "start: the store is tried for conditional puts", Match: under(".ropewalk-probe/")},
	}
}

// isReadable reports whether a key belongs to a run or to a warm start, and to no weights or states of training.
func isReadable(key string) bool {
	record := strings.HasPrefix(key, "runs/run=") || strings.HasPrefix(key, "warmstarts/")
	return record && (!strings.Contains(key, "/checkpoints/") || strings.HasSuffix(key, ".json") ||
		strings.HasSuffix(key, ".jinja"))
}

func under(prefix string) func(string) bool {
	return func(key string) bool { return strings.HasPrefix(key, prefix) && key != prefix }
}

func quoted[S ~string](names []S) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("`%s`", name)
	}
	return strings.Join(out, ", ")
}
