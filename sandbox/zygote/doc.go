// Package zygote runs Python calls in children of warm interpreters. Linux only.
//
// Open returns an Executor, which runs independent calls. OpenSessions returns Sessions, whose interpreters keep their
// variables from one piece of code to the next.
//
//	Executor.Run ─▶ scheduler ─▶ slot ─▶ zygote ──fork──▶ child, runs the call
//	      ▲                                │                │
//	      └──────── verdict ◀── link ◀─────┴──── board ◀────┘
//
// A *zygote* is a Python process that has imported the libraries that calls commonly need, and then waits. For each
// *call* it forks a *child*, which confines itself, runs the code and exits. The zygote reaps the child, kills the
// processes that the child left behind, empties the *work folder* and sends the *reply*. A zygote runs one call at a
// time.
//
// An executor has two *slots* for each of Options.Workers. A slot holds one zygote for every package set that calls in
// it have asked for. Every call begins in the *foreground*. A call that uses up its *time slice* while others wait is
// *set aside*: it continues in the *background* (scheduler.go). The *link* is the socket over which the parent sends a
// call's descriptors and receives the reply. The *board* is memory that a child shares with its zygote; the child
// writes its record there.
//
// # Tiers of isolation
//
// Open takes the strongest tier that the machine allows and refuses a tier weaker than Options.MinTier. Isolation
// returns the tier's name. docs/sandbox.md has the threat model.
//
//   - "full": user, process, network, mount, IPC and UTS namespaces under a user id that
//     is not root; a read-only root that holds only the interpreter and system libraries; no
//     /proc, /tmp or /dev/shm; the work folder is a tmpfs of 16 MiB. The zygote is init of its
//     process namespace, so killing it ends daemons too. A seccomp filter lists the allowed system
//     calls; no namespace can be created inside.
//   - "landlock": no namespaces. Landlock allows reading only in interpreter and system folders
//     and writing only in the work folder (names and sizes of other files can still be seen).
//     The filter also refuses new processes and signals, so that killing one child ends the whole
//     call, and changes to files' modes, owners, times and attributes, which Landlock does not check.
//     If the parent is root, calls run as another user.
//   - "rlimits": the same filter, if the kernel supports filters, and limits. Calls can read and write
//     all files that the user can. Only for trusted code.
//
// Every tier limits CPU time, address space, file size, open files and core dumps; "full" also limits processes. The
// filter refuses network access in every tier. The kernel counts CPU time and memory per process, so a call that forks
// (up to 31 processes, threads included) can use a multiple of both until its wall limit. Where control groups can be
// created, they bound the memory and the processes of a zygote together with its call.
//
// # What a verdict rests on
//
// A verdict rests on the wait status, which the zygote reads, and on what the parent did (wall limit, output limit). A
// signal that neither the parent, nor the code, nor the kernel has sent came from outside, and is breakage
// (sandbox/syscalls). Time in which the call was stopped from outside does not count towards its wall limit (stops.go).
// A kill for lack of memory is a verdict if the call used up the memory of its own control group (memory.go).
//
// On the board, a child describes its failure (by the exception's type and number) and the value of the last
// expression. Hostile code can write there too. The record is bounded, and the parent uses it only where it agrees with
// the exit status, so forged records can do no more than mislabel the code's own failure or value. Whether the code has
// begun is noted in memory that the child gives up before it runs the code, so code cannot disguise its failure as the
// sandbox's. Text in the output decides nothing.
//
// Later calls get copies of the zygote's memory. So the zygote reads only the numbers of a request and leaves the rest
// to the child; a record goes from the board into the link without a copy; and tasks that read names in the work folder
// run in processes of their own.
//
// # Same code, same result
//
// A call sees an empty environment, an empty work folder, the file name main.py, hash seed 0, the module random seeded
// with 0, the locale-independent UTF-8 mode and, in the tier "full", a fixed folder and process id. Tracebacks show
// only the code's own frames, since the paths of the standard library differ between machines. Addresses in default
// representations are replaced by zeros. Address randomisation is off where the kernel allows that, so id() and
// orderings that depend on it are mostly equal between calls on one machine and interpreter, without a guarantee.
// Clocks and os.urandom are real, so results that depend on them differ.
//
// The output of a call that timed out depends on the machine's speed, so it is dropped. Of a call that wrote too much,
// the stream that overflowed is kept up to the limit. Stdout and Stderr are text: bytes that are not UTF-8 become
// U+FFFD.
//
// # Sessions
//
// A *session* is an interpreter that keeps its variables from *cell* to cell. A *fork server* is a zygote that forks
// sessions instead of calls. In the tier "full" each session has user, process, mount and IPC namespaces of its own,
// within those of the fork server. The session's *init* only waits for the session's *interpreter*; when init exits,
// everything that the session started ends. The work folder is a tmpfs that no other session has mounted. A second
// filter refuses mounts, namespaces and changes to the limits of other processes. In the other tiers a session is one
// process with a folder of its own, and in "landlock" also a Landlock ruleset of its own.
//
// The parent sends a cell to the interpreter as a packet and gets its answer as a packet. Output flows through pipes
// that the parent drains at all times. Code in the interpreter can forge what the interpreter sends. A packet that does
// not belong to the running cell ends the session with the verdict "killed"; a forged packet of the running cell can
// only mislabel that cell. How a session ended is taken from wait, by its init or by the fork server.
//
// The parent reads the interpreter's CPU clock, because the kernel's limit of CPU time cannot be raised again for the
// next cell. This time includes threads; time that threads use between cells counts towards the next cell. It does not
// include processes that a cell starts, which are bounded by the wall limit and the end of the session. Output written
// between cells belongs to the next cell. The interpreter reports its memory with each answer, and wait reports it at
// the end.
//
// A fork server and all its sessions share control groups, where groups can be created. Each session has a memory group
// of its own below, so that one that runs out of memory can be told from the others. In the tier "full" the number of a
// session's processes is bounded too. If an interpreter is ended by a signal from outside, the session counts as lost,
// not as ended, and its variables are lost. Faults count as its own code's.
//
// A session sees what a call sees, with three exceptions: its code is named <cell 1>, <cell 2> and so on, it has no
// __file__, and descriptor 3 is its socket. Time-outs, too much output, a MemoryError, exits and signals end it.
package zygote
