// Package e2e tests the command as a user runs it: the real binary, the real servers, the record
// read back from the store's plain files.
//
// A *home* is one ROPEWALK_HOME with the environment of the commands that use it. The *base run* is
// the undisturbed run of the tiny recipe; whatever disturbs another run must end in its record. A
// run's *outline* is everything that it committed under names that do not hold the run's own.
package e2e
