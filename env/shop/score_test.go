package shop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The score's formula on products that are written down here.
func TestScores(t *testing.T) {
	shirt := &product{family: 0, kind: kind{"t-shirt", "tops"}, brand: "alto", audience: "men's", price: 2550,
		attributes: []string{"cotton", "slim fit", "hand wash"},
		options:    []option{{"color", []string{"red", "blue"}}, {"size", []string{"small", "large", "x-large"}}}}
	like := func(change func(p *product)) *product {
		p := *shirt
		change(&p)
		return &p
	}
	with := func(attributes ...string) *product {
		return like(func(p *product) { p.attributes = attributes })
	}
	red, large, boots := chosen{"color", "red"}, chosen{"size", "large"}, kind{"boots", "shoes"}
	both := []chosen{red, large}
	g := goal{Attributes: []string{"cotton", "hand wash"}, Options: both, Price: 30}
	for name, c := range map[string]struct {
		bought  *product
		options []chosen
		want    float64
	}{
		"all that is asked for":       {shirt, both, 1},
		"a size that has the word":    {shirt, []chosen{red, {"size", "x-large"}}, 1},
		"no options":                  {shirt, nil, 3.0 / 5},
		"another color":               {shirt, []chosen{{"color", "blue"}, large}, 4.0 / 5},
		"too dear":                    {like(func(p *product) { p.price = 3001 }), both, 4.0 / 5},
		"at the bound":                {like(func(p *product) { p.price = 3000 }), both, 1},
		"one attribute less":          {with("cotton", "slim fit"), nil, 2.0 / 5},
		"an attribute in other words": {with("wash hand", "cotton"), nil, 3.0 / 5},
		"only the price":              {with("slim fit"), nil, 1.0 / 5},
		"a kind of the same group":    {like(func(p *product) { p.kind.name = "blouse" }), both, 1},
		"a kind of another group":     {like(func(p *product) { p.kind = boots }), both, 1},
		"and for others":              {like(func(p *product) { p.audience, p.kind = "girls", boots }), both, 0},
	} {
		require.InDelta(t, c.want, g.score(shirt, c.bought, c.options), 1e-12, name)
	}
}

// The factor of the type: half if only the nouns are alike, and few of them; a tenth and nothing below.
func TestTypeScores(t *testing.T) {
	many := &product{brief: true, kind: kind{"dining chair coffee table desk", "seating"}, family: 3}
	for name, c := range map[string]struct {
		kind string
		want float64
	}{
		"a fifth of the nouns": {"green desk", 0.5}, "two fifths": {"dining desk", 1}, "none": {"sofa", 0},
	} {
		other := &product{brief: true, kind: kind{c.kind, "other"}, family: 0}
		require.InDelta(t, c.want, typeScore(many, other), 0, name)
	}
	long := &product{brief: true, family: 3,
		kind: kind{"dining chair coffee table desk floor lamp area rug bed frame", "x"}}
	require.InDelta(t, 0.1, typeScore(long, &product{brief: true, kind: kind{"bed", "y"}}), 0)
	nameless := &product{brief: true, family: 3, kind: kind{"thing", "x"}}
	require.InDelta(t, 0.5, typeScore(nameless, &product{brief: true, kind: kind{"bed", "y"}}), 0)
	require.Equal(t, []string{"men's", "hdmi", "cable"}, nounsOf("alto men's gold plated hdmi cable, cable, long"))
}

func TestColorsInOptions(t *testing.T) {
	require.Equal(t, "blue", plainColor("light blue (matte)"))
	require.True(t, sameOption("dark red", "red"))
	require.False(t, sameOption("dark red", "green"))
	require.False(t, sameOption("vanilla", "mango"))
}
