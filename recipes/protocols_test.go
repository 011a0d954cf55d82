package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Arithmetic trains in every protocol with tools, where the recipe's reward finds the protocol's answers.
func TestProtocolsOfQuestions(t *testing.T) {
	for _, p := range protocol.All {
		spec := p.Spec()
		r, err := Resolve("quickstart", "", []string{"rollout.protocol=" + spec.Name}, nil, nil)
		if spec.Acts {
			require.ErrorContains(t, err, spec.Name+" is a protocol of actions, and calc takes none")
			continue
		}
		if spec.Answer == protocol.AnswerProgram {
			require.ErrorContains(t, err, "rstar2_outcome looks for a box, and an answer of rollout.protocol "+
				spec.Name+" has none")
			continue
		}
		require.NoError(t, err)
		require.Empty(t, r.Recipe.Planned())
		got, err := r.Recipe.Protocol()
		require.NoError(t, err)
		require.Equal(t, spec.Name, got.Spec().Name)

		_, err = Resolve("quickstart", "", []string{"rollout.protocol=" + spec.Name, "reward.name=dapo_strict"}, nil,
			nil)
		if spec.Answer == protocol.AnswerInTags || spec.Answer == protocol.AnswerText {
			require.ErrorContains(t, err, "dapo_strict looks for a box, and an answer of rollout.protocol "+spec.Name+
				" has none")
		} else {
			require.NoError(t, err)
		}
		_, err = Resolve("quickstart", "", []string{"rollout.protocol=" + spec.Name, "layout=turns",
			"rollout.history=1", "advantage={name: gigpo}"}, nil, nil)
		if len(spec.Stops) > 0 {
			require.ErrorContains(t, err, "a turn of rollout.protocol "+spec.Name+" goes on after a call")
		} else {
			require.NoError(t, err)
		}
	}
}
