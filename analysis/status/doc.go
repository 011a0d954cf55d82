// Package status derives where a run is from what is known about it. Every reader uses it: the commands, the report,
// the record's readers and the attributes in Temporal's UI.
//
// A run's *status* is its *state* with the kind and text of a failure. The facts come from three places. The record
// says what is finished. A Temporal server says how the run's latest workflow is, if one was asked. The latest *note*
// of the run's state (schema.StateNote) says how it was when it last changed; it helps readers who ask no server.
//
//	record, workflow, note → Facts → Of → Status
package status
