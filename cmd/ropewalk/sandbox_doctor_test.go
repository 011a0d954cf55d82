package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/probe"
)

func TestSandboxDoctor(t *testing.T) {
	var out, complaints bytes.Buffer
	code := Run(t.Context(), []string{"sandbox", "doctor", "--json", "--min-tier", "rlimits"}, &out, &complaints)
	var report probe.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	if report.Tier == "" {
		t.Skipf("no tier is available: %s", complaints.String())
	}
	require.Equal(t, exitDone, code, complaints.String())
	for _, least := range sandbox.Tiers() {
		out.Reset()
		complaints.Reset()
		code = Run(t.Context(), []string{"sandbox", "doctor", "--min-tier", string(least)}, &out, &complaints)
		require.Contains(t, out.String(), "\ntier "+string(report.Tier)+"\n")
		if report.Tier.AtLeast(least) {
			require.Equal(t, exitDone, code)
			continue
		}
		require.Equal(t, exitFailed, code)
		require.Contains(t, complaints.String(),
			"grants tier "+string(report.Tier)+", and --min-tier asks for "+string(least))
	}
}

func TestSandboxDoctorWithoutPython(t *testing.T) {
	var out, complaints bytes.Buffer
	require.Equal(t, exitFailed, Run(t.Context(), []string{"sandbox", "doctor", "--python", "/nowhere/python3"}, &out,
		&complaints))
	require.Contains(t, complaints.String(), "no tier is available")
	require.Contains(t, complaints.String(), "/nowhere/python3")
	require.Contains(t, out.String(), "user namespace")
}

func TestSandboxDoctorRefusesATierThatIsNone(t *testing.T) {
	var out, complaints bytes.Buffer
	require.Equal(t, exitBadInput, Run(t.Context(), []string{"sandbox", "doctor", "--min-tier", "strong"}, &out,
		&complaints))
	require.Contains(t, complaints.String(), `--min-tier: tier "strong" is not one of full, landlock, rlimits`)
	require.Empty(t, out.String())
}
