package sandbox_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// neighbour is a call that has something worth reading for a while, and reports whether it was disturbed.
const neighbour = `import os, time
def standing(): return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)
before = standing()
open("held", "w").write("` + secret + `")
held = "` + secret + `" * 100
until = time.monotonic() + .5
while time.monotonic() < until: time.sleep(.005)
print(open("held").read() == held[:len(open("held").read())], sorted(os.listdir(".")), standing() == before)`

// slotAttacks run at the same time as the neighbour.
var slotAttacks = []string{
	`for folder, _, files in os.walk("/"):
    if "held" in files: print(open(os.path.join(folder, "held")).read())
for depth in ("..", "../..", "../../.."):
    for n in range(8):
        try: print(open(os.path.join(depth, str(n), "held")).read())
        except OSError: pass`,
	`for pid in range(1, 70000):
    for act in (lambda: os.kill(pid, 9), lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
            lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))):
        if pid == os.getpid(): break
        try: act()
        except OSError: pass`,
	`while True:
    try: os.fork()
    except OSError: pass`,
	`kept = []
while True:
    try: kept.append(socket.socketpair())
    except OSError: pass`,
}

// Calls that run at the same time cannot reach each other.
func TestNeighboursAreLeftAlone(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.TierFull, sandbox.TierLandlock} {
		t.Run(string(tier), func(t *testing.T) {
			e, err := zygote.Open(zygote.Options{Tier: tier, Workers: 2})
			if err != nil {
				missing(t, tier, err)
			}
			defer func() { require.NoError(t, e.Close()) }()
			for _, attack := range slotAttacks {
				calls := []sandbox.Call{{Code: neighbour, Limits: quick},
					{Code: prelude + "SYS = {}\n" + attack, Limits: briefly}}
				results, err := e.Run(t.Context(), calls)
				require.NoError(t, err)
				require.Equal(t, "True ['held'] True\n", results[0].Stdout, "%s\n%s", attack, results[0].Stderr)
				require.NotContains(t, results[1].Stdout, secret)
				require.True(t, slices.Contains(sandbox.Statuses(), results[1].Status) && !results[1].Status.Breakage())
			}
		})
	}
}
