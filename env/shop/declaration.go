package shop

import (
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "webshop", Doc: "shopping in a simulated shop", Source: "WebShop (Yao et al. 2022); ARLArena Table S1",
	Interactive: true, Demonstrated: true, Protocol: "think_action",
	Rewards:  []string{"arlarena", "spear", "spear_agent"},
	Strings:  fixed,
	Lay:      lay,
	Goal:     asked,
	World:    describeWorld,
	Settings: env.SettingsOf[fields](),
	Open:     open,
}

// fields are the settings in a recipe. Their defaults describe the full-size shop.
type fields struct {
	Products   int    `json:"products" quiet:"true" doc:"products of the catalogue, at least 20; 0 = 10000" default:"0" min:"0" max:"200000"`
	Families   string `json:"families" quiet:"true" doc:"categories of products, separated by commas: fashion, beauty, electronics, furniture, grocery; empty = all" default:"\"\""`
	Results    int    `json:"results" quiet:"true" doc:"products on a page of results; 0 = 10" default:"0" min:"0" max:"50"`
	Attributes int    `json:"attributes" quiet:"true" doc:"attributes that a goal names; 0 = one to three" default:"0" min:"0" max:"3"`
	Brief      bool   `json:"brief" quiet:"true" doc:"titles of one attribute and the kind, products with one option, goals of one attribute, no other texts" default:"false"`
	Essential  bool   `json:"essential" quiet:"true" doc:"no buttons for description, features, reviews and an empty search" default:"false"`
	Release    string `json:"release" quiet:"true" doc:"folder of WebShop's own release, an absolute path: its engine plays instead of the generated shop, in the workers' Python. Every worker reads it; empty = a generated shop" default:"\"\""`
	Marks      bool   `json:"marks" quiet:"true" doc:"a product's page begins with the chosen values, as in WebShop's rich texts" default:"false"`
}

// describeWorld says whether the shop is WebShop's or stands in for it.
func describeWorld(s env.Settings) string {
	if f, err := env.Read[fields](s); err != nil || f.Release != "" {
		return "WebShop's release in " + f.Release
	}
	return "a generated shop, which stands in for WebShop's products (settings.release names a folder of its release)"
}

func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil {
		return nil, err
	}
	e, err := New(Settings{MaxTurns: o.MaxTurns, Products: f.Products, Families: env.Names(f.Families),
		Results: f.Results, Attributes: f.Attributes, Brief: f.Brief, Essential: f.Essential, Marks: f.Marks})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// fixed lists the strings that become one token each: names, numbers and the words around them. Brands are left out.
func fixed() []string {
	out := []string{
		instructed, find, with, andWith, lowerThan, dollars, separator, "'" + buttonBack + separator, buttonBack,
		buttonPrevious, buttonNext, buttonDescription, buttonFeatures, buttonReviews, buttonBuy,
		"'" + buttonSearch + "'", "Page ", total, ")" + separator, clickedText, "Price: ", "Rating: ", ": ", thanks,
		yourScore, anyQuery, openSearch, openClick, click(buttonBack), click(buttonPrevious), click(buttonNext),
		click(buttonBuy), click(buttonSearch), click(buttonDescription), click(buttonFeatures), click(buttonReviews),
		idPrefix, " of ",
	}
	out = append(out, idPieces...)
	for tens := 1; tens <= 9+priceSteps; tens++ {
		price := strconv.Itoa(10 * tens)
		out = append(out, "$"+price+".00", price+dollars)
	}
	for _, f := range families {
		out = append(out, f.audiences...)
		for _, a := range f.attributes {
			out = append(out, a+" ", a)
		}
		for _, k := range f.kinds {
			out = append(out, k.name)
		}
		for _, o := range f.options {
			out = append(out, o.name, o.name+": ")
			out = append(out, o.values...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
