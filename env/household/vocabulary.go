package household

import "strings"

// marks is what can be done with a thing, or what has been done with it.
type marks uint8

const (
	clean  marks = 1 << iota // can be cleaned; is clean
	heat                     // can be heated; is hot
	cool                     // can be cooled; is cool
	slice                    // can be sliced; is sliced
	toggle                   // can be switched on; is switched on
	vessel                   // holds other things in ALFWorld's descriptions; no action uses it
	cuts                     // slices other things
)

// stock is a class of places in a kind of room, with the range of its number.
type stock struct {
	class    string
	min, max int
}

// room is a kind of room.
type room struct {
	name   string
	places []stock // in the order of their names
}

var rooms = []room{
	{"kitchen", []stock{{"cabinet", 4, 12}, {"coffeemachine", 1, 1}, {"countertop", 1, 3}, {"diningtable", 0, 1},
		{"drawer", 2, 8}, {"fridge", 1, 1}, {"garbagecan", 1, 1}, {"microwave", 1, 1}, {"shelf", 0, 3},
		{"sidetable", 0, 1}, {"sinkbasin", 1, 1}, {"stoveburner", 2, 4}, {"toaster", 1, 1}}},
	{"livingroom", []stock{{"armchair", 1, 2}, {"cabinet", 0, 4}, {"coffeetable", 1, 2}, {"diningtable", 0, 1},
		{"drawer", 0, 4}, {"dresser", 0, 1}, {"garbagecan", 1, 1}, {"safe", 0, 1}, {"shelf", 0, 6},
		{"sidetable", 1, 2}, {"sofa", 1, 1}, {"tvstand", 0, 1}}},
	{"bedroom", []stock{{"armchair", 0, 1}, {"bed", 1, 2}, {"desk", 1, 2}, {"drawer", 2, 6}, {"dresser", 0, 1},
		{"garbagecan", 1, 1}, {"laundryhamper", 0, 1}, {"safe", 0, 1}, {"shelf", 1, 6}, {"sidetable", 1, 2}}},
	{"bathroom", []stock{{"bathtubbasin", 0, 1}, {"cabinet", 2, 4}, {"cart", 0, 1}, {"countertop", 1, 1},
		{"drawer", 0, 4}, {"garbagecan", 1, 1}, {"handtowelholder", 1, 2}, {"shelf", 0, 2}, {"sinkbasin", 1, 2},
		{"toilet", 1, 1}, {"toiletpaperhanger", 1, 1}, {"towelholder", 1, 2}}},
}

// doors are the classes of places that can have a door. A cabinet or a drawer may lack one.
var doors = words("cabinet drawer fridge microwave safe")

// kind is a class of things.
type kind struct {
	name   string
	rooms  []string
	can    marks
	places []string // classes of places where it can lie
}

const (
	surfaces = "coffeetable countertop desk diningtable dresser shelf sidetable tvstand"
	food     = "countertop diningtable fridge garbagecan microwave sidetable sinkbasin"
	dishes   = "cabinet countertop diningtable fridge shelf sidetable sinkbasin"
	cutlery  = "countertop diningtable drawer sidetable sinkbasin"
	pans     = "cabinet countertop diningtable fridge sinkbasin stoveburner"
	spices   = "cabinet countertop diningtable drawer shelf sidetable"
	small    = surfaces + " armchair bed drawer safe sofa"
	bath     = "bathtubbasin cabinet cart countertop drawer garbagecan shelf sinkbasin toilet"
)

// kinds are the classes of things, in the order of their names. The classes of AI2-THOR that ALFWorld's tasks are
// about, and whether they can be cleaned, heated, cooled and sliced there; where they lie is plainer than there.
var kinds = []kind{
	{"alarmclock", words("bedroom"), 0, words("desk dresser shelf sidetable")},
	{"apple", words("kitchen"), clean | heat | cool | slice, words(food)},
	{"book", words("bedroom livingroom"), 0, words(small + " cabinet")},
	{"bowl", words("bedroom kitchen livingroom"), clean | cool | vessel, words(dishes + " desk coffeetable dresser")},
	{"box", words("bedroom livingroom"), vessel, words(surfaces + " armchair bed cabinet sofa")},
	{"bread", words("kitchen"), heat | cool | slice, words("countertop diningtable fridge garbagecan microwave")},
	{"butterknife", words("kitchen"), clean | cuts, words(cutlery)},
	{"candle", words("bathroom"), 0, words("cabinet cart countertop drawer shelf toilet")},
	{"cd", words("bedroom"), 0, words("desk drawer dresser garbagecan safe shelf sidetable")},
	{"cellphone", words("bedroom livingroom"), 0, words(small)},
	{"cloth", words("bathroom"), clean, words(bath)},
	{"creditcard", words("bedroom livingroom"), 0, words(small)},
	{"cup", words("kitchen"), clean | heat | cool | vessel, words(dishes + " microwave")},
	{"desklamp", words("bedroom livingroom"), toggle, words("desk dresser sidetable")},
	{"dishsponge", words("kitchen"), clean, words("cabinet countertop drawer garbagecan shelf sinkbasin")},
	{"egg", words("kitchen"), clean | heat | cool | slice, words(food)},
	{"fork", words("kitchen"), clean, words(cutlery)},
	{"handtowel", words("bathroom"), 0, words("cabinet countertop garbagecan handtowelholder sinkbasin")},
	{"kettle", words("kitchen"), clean, words("cabinet countertop diningtable shelf sinkbasin stoveburner")},
	{"keychain", words("bedroom livingroom"), 0, words(small)},
	{"knife", words("kitchen"), clean | cuts, words(cutlery)},
	{"ladle", words("kitchen"), clean, words(cutlery)},
	{"laptop", words("bedroom livingroom"), 0, words("armchair bed coffeetable desk diningtable dresser sofa")},
	{"lettuce", words("kitchen"), clean | cool | slice,
		words("countertop diningtable fridge garbagecan sinkbasin")},
	{"mug", words("bedroom kitchen"), clean | heat | cool | vessel,
		words(dishes + " coffeemachine desk drawer microwave")},
	{"newspaper", words("livingroom"), 0, words(small + " garbagecan")},
	{"pan", words("kitchen"), clean | cool | vessel, words(pans)},
	{"pen", words("bedroom"), 0, words("desk drawer dresser garbagecan shelf sidetable")},
	{"pencil", words("bedroom"), 0, words("desk drawer dresser garbagecan shelf sidetable")},
	{"peppershaker", words("kitchen"), 0, words(spices)},
	{"pillow", words("bedroom livingroom"), 0, words("armchair bed sofa")},
	{"plate", words("kitchen"), clean | heat | cool | vessel, words(dishes + " microwave")},
	{"pot", words("kitchen"), clean | cool | vessel, words(pans)},
	{"potato", words("kitchen"), clean | heat | cool | slice, words(food)},
	{"remotecontrol", words("livingroom"), 0, words(small)},
	{"saltshaker", words("kitchen"), 0, words(spices)},
	{"soapbar", words("bathroom"), clean, words(bath)},
	{"soapbottle", words("bathroom kitchen"), 0, words(bath)},
	{"spatula", words("kitchen"), clean, words(cutlery)},
	{"spoon", words("kitchen"), clean, words(cutlery)},
	{"spraybottle", words("bathroom"), 0, words(bath)},
	{"statue", words("livingroom"), 0, words(surfaces + " safe")},
	{"tissuebox", words("bedroom livingroom"), 0, words(surfaces + " cabinet drawer")},
	{"toiletpaper", words("bathroom"), 0, words(bath + " toiletpaperhanger")},
	{"tomato", words("kitchen"), clean | heat | cool | slice, words(food)},
	{"towel", words("bathroom"), 0, words("bathtubbasin towelholder")},
	{"vase", words("livingroom"), 0, words(surfaces + " cabinet safe")},
	{"watch", words("bedroom livingroom"), 0, words(small)},
	{"winebottle", words("kitchen"), cool, words("cabinet countertop diningtable fridge garbagecan shelf")},
}

func words(text string) []string { return strings.Fields(text) }

// kindNamed returns a class of things by its name.
func kindNamed(name string) (kind, bool) {
	k, ok := kindByName[name]
	return k, ok
}

var kindByName = func() map[string]kind {
	all := map[string]kind{}
	for _, k := range kinds {
		all[k.name] = k
	}
	return all
}()

// placeClasses are the names of all classes of places, in the order of the rooms.
var placeClasses = func() (names []string) {
	known := map[string]bool{}
	for _, r := range rooms {
		for _, s := range r.places {
			if !known[s.class] {
				known[s.class] = true
				names = append(names, s.class)
			}
		}
	}
	return names
}()
