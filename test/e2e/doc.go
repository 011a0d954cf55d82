// Package e2e tests the program as a user runs it, with real servers.
//
// All tests share one pair of servers, Temporal and an S3 server, and run in parallel. Each test *declares* in its
// first line what it needs of them (needs):
//
//	noServers       nothing may be started
//	sharedStack     the stack that runs for the whole package: its record is read, and runs are added to it
//	ownNamespace    a namespace, a bucket and a worker of the test's own on the shared servers, with a copy of the
//	                base run, which the test may damage
//	emptyNamespace  the same without the base run
//	ownServers      servers of the test's own, for a reason: the test kills them, or has them end
//
// A home is the folder of state and the environment of a user's commands. The *base run* is made once. Other runs are
// compared with it: whatever happens on the way, a run of the same recipe and seed has the same weights and record. A
// run's *outline* is all that it has committed, without the run's name and measured times.
//
// Tests wait for what the program shows: objects of the store, workflows, lines of logs. To kill a worker in the middle
// of something, they first stop its process while the record shows it (freezeWhile). The *long forms* are skipped
// unless they are asked for: a make target asks for one, ROPEWALK_LONG_FORMS for all.
package e2e
