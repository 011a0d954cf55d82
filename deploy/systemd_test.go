package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// find returns the path of a program, or skips the test. ROPEWALK_REQUIRE_<what>=1 makes its absence a failure.
func find(t *testing.T, program, what string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("ROPEWALK_REQUIRE_"+what) != "" {
		t.Fatalf("ROPEWALK_REQUIRE_%s is set, and %s is not on PATH", what, program)
	}
	t.Skipf("%s is not on PATH", program)
	return ""
}

// units copies the units with another program in place of /usr/local/bin/ropewalk, which need not be installed here.
func units(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS("systemd")))
	files, err := filepath.Glob(filepath.Join(folder, "*.service"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	open := filepath.Join(folder, "ropewalk-sandbox.open.conf")
	for _, file := range append(files, open) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "=/usr/local/bin/ropewalk ")
		replaced := strings.ReplaceAll(string(text), "/usr/local/bin/ropewalk", "/bin/true")
		require.NoError(t, os.WriteFile(file, []byte(replaced), 0o644))
	}
	for from, unit := range map[string]string{"open": "service", "open-socket": "socket"} {
		dropIn := filepath.Join(folder, "ropewalk-sandbox."+unit+".d")
		require.NoError(t, os.Mkdir(dropIn, 0o755))
		require.NoError(t, os.Rename(filepath.Join(folder, "ropewalk-sandbox."+from+".conf"),
			filepath.Join(dropIn, "open.conf")))
	}
	return folder
}

// systemd reads every unit with its drop-ins and has nothing to say about it: no unknown setting, no unknown value.
func TestSystemdReadsTheUnits(t *testing.T) {
	program := find(t, "systemd-analyze", "SYSTEMD")
	folder := units(t)
	for _, unit := range []string{"ropewalk-worker@cpu.service", "ropewalk-worker@rollout.service",
		"ropewalk-worker@sandbox.service", "ropewalk-worker@gpu.service", "ropewalk-sandbox.service",
		"ropewalk-sandbox.socket"} {
		cmd := exec.Command(program, "verify", "--man=no", unit)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+folder+":/usr/lib/systemd/system", "SYSTEMD_COLORS=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", unit, out)
		for line := range strings.Lines(string(out)) {
			require.NotContains(t, line, folder, "%s", unit) // it also reports on other units of this machine
		}
	}
	broken := filepath.Join(folder, "broken.service")
	require.NoError(t, os.WriteFile(broken, []byte("[Service]\nExecStart=/bin/true\nNoNewPrivilege=yes\n"), 0o644))
	out, _ := exec.Command(program, "verify", "--man=no", broken).CombinedOutput()
	require.Contains(t, string(out), folder, "a misspelt setting would be noticed")
}

// The sandbox service has no network but the socket that systemd passes, also where other hosts may call it: what lets
// their calls in lets nothing out. The network that the drop-in names is an example, which no host has.
func TestTheSandboxUnitReachesNothing(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("systemd", file))
		require.NoError(t, err)
		return string(text)
	}
	service, open := read("ropewalk-sandbox.service"), read("ropewalk-sandbox.open.conf")
	require.Contains(t, service, "\nPrivateNetwork=yes\n")
	require.Contains(t, service, "\nIPAddressDeny=any\nIPAddressAllow=localhost\n")
	for _, unit := range []string{service, open} {
		require.Contains(t, unit, " --listen systemd")
	}
	require.NotContains(t, open, "IPAddress")
	require.NotContains(t, open, "PrivateNetwork")
	require.Contains(t, read("ropewalk-sandbox.socket"), "\nIPAddressDeny=any\nIPAddressAllow=localhost\n")
	require.Contains(t, read("ropewalk-sandbox.open-socket.conf"), "\nIPAddressAllow=192.0.2.0/24\n")
}

// systemd's own measure of exposure, of ten. What a unit is granted beyond these is a decision.
func TestUnitsAreConfined(t *testing.T) {
	program := find(t, "systemd-analyze", "SYSTEMD")
	folder := units(t)
	for unit, most := range map[string]string{"ropewalk-worker@cpu.service": "15", "ropewalk-worker@gpu.service": "20",
		"ropewalk-sandbox.service": "30"} {
		cmd := exec.Command(program, "security", "--offline=true", "--no-pager", "--threshold="+most, unit)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+folder+":/usr/lib/systemd/system")
		if out, err := cmd.CombinedOutput(); err != nil {
			if strings.Contains(string(out), "unrecognized option") {
				t.Skip("this systemd cannot assess files: version 250 can")
			}
			t.Errorf("%s is exposed by more than %s of 100:\n%s", unit, most, out)
		}
	}
}
