// Package zygote runs Python calls in children of warm interpreters. Linux only.
//
// A *zygote* is a Python process that has imported what calls commonly need and then waits.
// For each *call* it forks a *child*, which confines itself, runs the code and exits; the
// zygote reaps it, ends what it left behind, empties the *work folder* and sends the *reply*.
// A zygote runs one call at a time; an executor owns two *slots* for each of Options.Workers, each slot with one zygote
// for every package set that calls in it have asked for: one for the *quick lane*, where calls begin, and one for the *long lane*,
// for calls that were *set aside* since they took longer than their *turn* while others waited (lanes.go). The *link* is the socket over which the parent sends a call's
// descriptors and gets the reply; the *board* is memory that a child shares with its zygote, for its record.
//
// # Tiers of isolation
//
// Open takes the strongest tier that the machine grants, refuses one weaker than Options.MinTier, and Isolation
// names it (docs/sandbox.md has the threat model):
//
//   - "full": user, process, network, mount, IPC and UTS namespaces under a user id that
//     is not root; a root that holds only the interpreter and system libraries, read-only; no
//     /proc, /tmp or /dev/shm; the work folder is a tmpfs of 16 MiB. The zygote is init of its
//     process namespace, so killing reaches daemons too. A seccomp filter lists the system calls that
//     there are; no namespace can be made within.
//   - "landlock": no namespaces. Landlock confines reading to interpreter and system folders
//     and writing to the work folder (names and sizes of other files can still be seen);
//     the filter also refuses new processes and signals, so that killing a child is complete, and
//     changes of files' modes, owners, times and attributes, which Landlock does not see.
//     If the parent is root, calls run as another user.
//   - "rlimits": the filter as before where the kernel takes one, and limits; files that the
//     user may read or write are open to calls. Only for code that one trusts.
//
// Every tier sets limits on CPU time, address space, file size, open files and core dumps;
// "full" limits processes too. The network is refused by the filter in every tier.
// The kernel counts CPU time and memory by process, so a call that forks (up to 31 processes,
// threads included) has a multiple of both until its wall limit; where control groups can be made,
// they bound memory and processes of a zygote with its call.
//
// # What a verdict rests on
//
// The wait status, seen by the zygote, and what the parent itself did (wall limit, output
// limit) decide. A child describes a failure (by the exception's type and number) and the
// value of the last expression on the board. Hostile code can write there too; the
// record is bounded, it is looked at only when it agrees with the exit status, and so it can
// do no more than mislabel its own failure or name its own value. Whether the code has begun stands in memory that the child
// gives up before it runs it, so code cannot pass its failure off as the sandbox's. Text in the output decides nothing.
//
// # Same code, same result
//
// A call sees an empty environment, an empty work folder, the file name main.py, hash seed 0,
// the module random seeded with 0, the locale-free UTF-8 mode and, in the tier "full",
// a fixed folder and process id. Tracebacks hold the code's own frames, not those of the standard
// library, whose paths differ from machine to machine. Addresses in default representations
// are shown as zeros. Address randomisation is off where the kernel allows that, so id() and
// orders that follow from it are mostly equal between calls on one machine and interpreter;
// that is a help and not a promise. Clocks, os.urandom and what depends on them are real. Output of a call that ran out of time depends on the machine's pace, so it is
// dropped; of a call that wrote too much, the stream that overflowed is kept up to the limit.
// Stdout and Stderr are text: bytes that are not UTF-8 become U+FFFD.
//
// # Sessions
//
// OpenSessions makes interpreters that keep their variables from *cell* to cell. A *mother* is a zygote that forks
// sessions instead of calls. In the tier "full" each has user, process, mount and IPC namespaces of its own within hers:
// its *init* only waits for its *interpreter*, and ends all that the session started by ending; its work folder is a
// tmpfs that no other session has mounted; a second filter refuses mounts, namespaces and others' limits. In the other
// tiers a session is one process with a folder of its own, under a Landlock ruleset of its own in "landlock".
//
// A cell is a packet to the interpreter, its answer one back; output flows through pipes that the parent drains at all
// times. What an interpreter sends may be forged by the code in it. A packet that is not of the cell that runs ends the
// session with the verdict "killed"; one that is can do no more than mislabel that cell. How a session ended is
// what its init, or the mother, saw in wait. The parent reads the interpreter's CPU clock: the kernel's limit of CPU time
// cannot be raised again for the next cell. It counts threads, and those that run between cells to the next one; it does
// not count processes that a cell starts, which the wall limit and the end of the session bound. What is
// written between cells is the next one's. Memory is told by the interpreter with each answer, and by wait at its end.
//
// A mother is in control groups with all her sessions, where they can be made: these bound what all of them use
// together. A session alone is bounded by the limits of its processes, and in the tier "full" by the number of these.
// An interpreter that got a SIGKILL which is not the parent's between two cells is lost and not ended: a machine
// short of memory sends it too, and who runs the cells again finds out.
//
// A session sees what a call sees, save that its code is named <cell 1>, <cell 2> and so on, that it has no __file__, and that
// descriptor 3 is its socket. Time-outs, too much output and a MemoryError end it, as do exits and signals.
package zygote
