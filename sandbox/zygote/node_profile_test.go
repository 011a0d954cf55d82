package zygote

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Filters add up: a call that a node's container refuses, the sandbox cannot allow. So the profile of nodes allows at
// least what the sandbox's own filter lets calls use, and what is never needed it does not allow.
func TestNodesMayUseWhatCallsMay(t *testing.T) {
	text, err := os.ReadFile("../../deploy/containers/seccomp-sandbox.json")
	require.NoError(t, err)
	var profile struct {
		DefaultAction string
		Syscalls      []struct {
			Names  []string
			Action string
		}
	}
	require.NoError(t, json.Unmarshal(text, &profile))
	require.Equal(t, "SCMP_ACT_ERRNO", profile.DefaultAction)
	var allows []string
	for _, s := range profile.Syscalls {
		require.Equal(t, "SCMP_ACT_ALLOW", s.Action)
		allows = append(allows, s.Names...)
	}
	require.Len(t, allows, len(slices.Compact(slices.Sorted(slices.Values(allows)))), "each once")
	number := regexp.MustCompile(`unix\.SYS_([A-Z0-9_]+)`)
	list := func(file, name string) (calls []string) {
		source, err := os.ReadFile(filepath.Join("../syscalls", file))
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(source), "var "+name+" = []uint32{")
		require.True(t, found, name)
		body, _, _ := strings.Cut(rest, "}\n")
		for _, m := range number.FindAllStringSubmatch(body, -1) {
			calls = append(calls, strings.ToLower(m[1]))
		}
		require.NotEmpty(t, calls, name)
		return calls
	}
	for name, file := range map[string]string{"allowed": "policy.go", "signals": "policy.go",
		"metadataCalls": "policy.go", "forks": "policy_amd64.go", "olderAllowed": "policy_amd64.go",
		"olderMetadataCalls": "policy_amd64.go"} {
		for _, call := range list(file, name) {
			require.Contains(t, allows, call, name)
		}
	}
	// What calls are refused, the node may use only if tier full is made of it or the service needs it.
	needed := []string{"socket", "connect", "bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg", "mlock",
		"sethostname", "pivot_root", "mount", "umount2", "unshare", "setns", "seccomp"}
	for _, call := range list("policy.go", "refused") {
		if !slices.Contains(needed, call) {
			require.NotContains(t, allows, call)
		}
	}
}
