package tinkertest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
)

// Python finds the Python that has SkyRL: ROPEWALK_TINKER_PYTHON, or the one that tools/worlds.sh makes. Without one
// the test is skipped, or fails if ROPEWALK_REQUIRE_TINKER is set.
func Python(t testing.TB) string {
	t.Helper()
	return servertest.Find(t, "ROPEWALK_TINKER_PYTHON", "ROPEWALK_REQUIRE_TINKER",
		filepath.Join("worlds", "tinker", "bin", "python"), "tools/worlds.sh tinker")
}

// folder is that of this file.
func folder(t testing.TB) string {
	t.Helper()
	return servertest.Path(t, "internal", "testing", "tinkertest")
}

// Real is a running server of SkyRL.
type Real = servertest.Process

// Start starts SkyRL's server on loopback with the base model in a folder, whose path is the model's name. The server
// and its engine end with the test.
func Start(t testing.TB, model string) *Real {
	t.Helper()
	variables := []string{"JAX_PLATFORMS=cpu", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1",
		fmt.Sprintf("OMP_NUM_THREADS=%d", max(1, runtime.GOMAXPROCS(0)))}
	p := servertest.Launch(t, "SkyRL's server", "/api/v1/healthz", variables, func(port string) []string {
		return []string{Python(t), filepath.Join(folder(t), "testdata", "serve.py"), port, model, t.TempDir()}
	})
	p.Wait(t)
	return p
}
