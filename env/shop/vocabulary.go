package shop

import (
	"slices"
	"strings"
)

// family is one of WebShop's five categories of products.
type family struct {
	name       string
	kinds      []kind
	attributes []string
	options    []option // the option that every product has, then the one that some have
	audiences  []string // groups of people that titles name; none in most families
	low, high  int      // prices in cents
}

// kind is a kind of product. WebShop calls it the query of a product.
type kind struct {
	name, group string
}

// option is something that a buyer chooses, with its possible values.
type option struct {
	name   string
	values []string
}

var (
	colors = words("red blue green black white grey pink purple yellow orange brown navy teal beige gold silver " +
		"olive coral ivory burgundy turquoise lavender khaki charcoal")
	sizes    = words("x-small small medium large x-large xx-large")
	scents   = words("rose citrus mint unscented eucalyptus sandalwood jasmine bergamot vetiver")
	volumes  = words("mini standard jumbo")
	versions = words("basic pro plus max")
	flavors  = words("vanilla chocolate strawberry lemon caramel cinnamon peanut salted barbecue honey mango original")
	packs    = []string{"single bag", "twin box", "family carton"}
)

// families lists the categories.
var families = []family{
	{
		name: "fashion", low: 900, high: 9900, audiences: words("men's women's girls boys"),
		kinds: kinds("tops: t-shirt, blouse, hoodie, sweater, jacket; bottoms: jeans, leggings, shorts; " +
			"shoes: sandals, sneakers, boots; dresses: evening dress, swimsuit; nightwear: pajamas, socks"),
		attributes: list("machine washable, cotton, polyester, long sleeve, short sleeve, slim fit, loose " +
			"fit, hand wash, elastic waist, rubber sole, tummy control, high waist, quick drying, moisture " +
			"wicking, memory foam, non slip, arch support, drawstring closure"),
		options: []option{{"color", colors}, {"size", sizes}},
	},
	{
		name: "beauty", low: 500, high: 5900,
		kinds: kinds("hair care: shampoo, conditioner, hair dye; skin care: face cream, sunscreen, lip balm, " +
			"body wash; makeup: eye shadow, nail polish, makeup brush; oral care: toothbrush; fragrance: " +
			"perfume"),
		attributes: list("cruelty free, sulfate free, paraben free, alcohol free, fragrance free, long " +
			"lasting, easy to use, sensitive skin, dry hair, natural ingredients, tea tree, coconut oil, " +
			"fine lines, oil free, travel size"),
		options: []option{{"scent", scents}, {"volume", volumes}},
	},
	{
		name: "electronics", low: 700, high: 29900,
		kinds: kinds("phones: phone case, screen protector, power bank, wireless charger; cables: hdmi " +
			"cable, usb cable; audio: bluetooth speaker, headphones; computers: laptop sleeve, keyboard; " +
			"photo: camera tripod; wearables: watch band"),
		attributes: list("fast charging, noise cancelling, water resistant, high speed, gold plated, easy to " +
			"install, hands free, carrying case, stereo sound, plug and play, high definition, heavy duty, " +
			"tempered glass, batteries included"),
		options: []option{{"color", colors}, {"version", versions}},
	},
	{
		name: "furniture", low: 1900, high: 89900,
		kinds: kinds("seating: sofa, ottoman, dining chair; storage: bookshelf; tables: coffee table, desk; " +
			"bedroom: bed frame, mattress; decor: floor lamp, area rug, curtains, pillow cover"),
		attributes: list("easy assemble, solid wood, faux leather, living room, space saving, height " +
			"adjustable, storage space, mid century, steel frame, eco friendly, stainless steel, assembly " +
			"required, fade resistant, king size"),
		options: []option{{"color", colors}, {"size", sizes[1:4]}},
	},
	{
		name: "grocery", low: 300, high: 4900,
		kinds: kinds("snacks: popcorn, granola bar, beef jerky, potato chips, trail mix; drinks: coffee " +
			"beans, green tea; pantry: olive oil, pasta sauce, protein powder; sweets: dark chocolate, dried " +
			"mango"),
		attributes: list("gluten free, dairy free, sugar free, non gmo, keto friendly, usda organic, low " +
			"carb, plant based, soy free, nut free, low sodium, ready to eat, kosher certified, high " +
			"protein, individually wrapped"),
		options: []option{{"flavor", flavors}, {"pack", packs}},
	},
}

func words(text string) []string { return strings.Fields(text) }

func list(text string) []string { return strings.Split(text, ", ") }

// kinds reads "group: kind, kind; group: kind".
func kinds(text string) (out []kind) {
	for part := range strings.SplitSeq(text, "; ") {
		group, names, _ := strings.Cut(part, ": ")
		for _, name := range list(names) {
			out = append(out, kind{name: name, group: group})
		}
	}
	return out
}

// familyNamed returns the index of a family, or −1.
func familyNamed(name string) int {
	return slices.IndexFunc(families, func(f family) bool { return f.name == name })
}

// nouns are the words of titles that say what a product is: the words of the kinds' names and of audiences. WebShop
// finds nouns with spaCy.
var nouns = func() map[string]bool {
	out := map[string]bool{}
	for _, f := range families {
		for _, w := range f.audiences {
			out[w] = true
		}
		for _, k := range f.kinds {
			for _, w := range words(k.name) {
				out[w] = true
			}
		}
	}
	return out
}()

// nounsOf returns the different nouns of a title.
func nounsOf(title string) (out []string) {
	for _, w := range strings.FieldsFunc(title, func(r rune) bool { return r == ' ' || r == ',' }) {
		if nouns[w] && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// The syllables of brands' names, the sentences of features, descriptions and reviews.
var (
	firstSyllables = words("al bar cor del en fin gor hal in jor kel lor mar nor os pel quil ros sel tor ul ven wil " +
		"yor zan")
	lastSyllables = words("adi bek con dor eva fix gan hex ium jet kit lux mo nix ora pex rio sto tix una vo wex " +
		"yo zen")
	featureForms = []string{"%s, as our customers ask for", "%s: made for every day", "this %[2]s is %[1]s",
		"proven to be %s", "%s and made to last"}
	descriptions = []string{"the %s that you have been looking for.", "a %s for home and travel.",
		"we made this %s with care.", "this %s is a fine gift for family and friends.", "a %s at a fair price."}
	reviews = []string{"exactly as described", "arrived on time", "i would buy it again", "smaller than i thought",
		"good value for the price", "my sister loves it"}
)
