package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Arguments of the user's code are JSON in a text, and a mapping is the same recipe.
func TestArgumentsAsAMapping(t *testing.T) {
	reward := func(more string) string { return "reward={name: python, module: 'a:b', path: /p" + more + "}" }
	text := resolved(t, "searchqa", reward(`, kwargs: '{"deep":{"x":[1,2]},"most":400}'`))
	mapping := resolved(t, "searchqa", reward(", kwargs: {most: 400, deep: {x: [1, 2]}}"))
	require.Equal(t, text.Digest, mapping.Digest)
	require.Equal(t, resolved(t, "searchqa", reward(", kwargs: ''")).Digest, resolved(t, "searchqa", reward("")).Digest)
	world := func(kwargs string) []string {
		return []string{"environment={name: python, settings: {module: 'a:b', kind: question, kwargs: " + kwargs + "}}",
			"reward={name: arlarena}"}
	}
	require.Equal(t, resolved(t, "reasoning", world(`'{"size":3}'`)...).Digest,
		resolved(t, "reasoning", world("{size: 3}")...).Digest)
	_, err := Resolve("searchqa", "", []string{reward(", kwargs: {most: .nan}")}, nil, nil)
	require.ErrorContains(t, err, "reward.kwargs: must be text")
}
