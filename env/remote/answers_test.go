package remote

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const writeAnswers = `import json, sys, reasoning_gym
print(json.dumps({f: [reasoning_gym.create_dataset(f, seed=7, size=20)[10 + i]["answer"] or "" for i in range(3)]
    for f in sys.argv[1:]}))`

// answersOf asks reasoning-gym itself for the answers of each family's first held-out tasks.
func answersOf(t *testing.T, interpreter string) (answers map[string][]string) {
	t.Helper()
	out, err := exec.Command(interpreter, append([]string{"-c", writeAnswers}, families...)...).Output()
	require.NoError(t, err, "families: %s", strings.Join(families, " "))
	require.NoError(t, json.Unmarshal(out, &answers))
	return answers
}
