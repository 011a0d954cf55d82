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
	fixed                    // cannot be taken
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
var doors = names("cabinet drawer fridge microwave safe")

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
	{"alarmclock", names("bedroom"), 0, names("desk dresser shelf sidetable")},
	{"apple", names("kitchen"), clean | heat | cool | slice, names(food)},
	{"book", names("bedroom livingroom"), 0, names(small + " cabinet")},
	{"bowl", names("bedroom kitchen livingroom"), clean | cool | vessel, names(dishes + " desk coffeetable dresser")},
	{"box", names("bedroom livingroom"), vessel, names(surfaces + " armchair bed cabinet sofa")},
	{"bread", names("kitchen"), heat | cool | slice, names("countertop diningtable fridge garbagecan microwave")},
	{"butterknife", names("kitchen"), clean | cuts, names(cutlery)},
	{"candle", names("bathroom"), 0, names("cabinet cart countertop drawer shelf toilet")},
	{"cd", names("bedroom"), 0, names("desk drawer dresser garbagecan safe shelf sidetable")},
	{"cellphone", names("bedroom livingroom"), 0, names(small)},
	{"cloth", names("bathroom"), clean, names(bath)},
	{"creditcard", names("bedroom livingroom"), 0, names(small)},
	{"cup", names("kitchen"), clean | heat | cool | vessel, names(dishes + " microwave")},
	{"desklamp", names("bedroom livingroom"), toggle | fixed, names("desk dresser sidetable")},
	{"dishsponge", names("kitchen"), clean, names("cabinet countertop drawer garbagecan shelf sinkbasin")},
	{"egg", names("kitchen"), clean | heat | cool | slice, names(food)},
	{"fork", names("kitchen"), clean, names(cutlery)},
	{"handtowel", names("bathroom"), 0, names("cabinet countertop garbagecan handtowelholder sinkbasin")},
	{"kettle", names("kitchen"), clean, names("cabinet countertop diningtable shelf sinkbasin stoveburner")},
	{"keychain", names("bedroom livingroom"), 0, names(small)},
	{"knife", names("kitchen"), clean | cuts, names(cutlery)},
	{"ladle", names("kitchen"), clean, names(cutlery)},
	{"laptop", names("bedroom livingroom"), 0, names("armchair bed coffeetable desk diningtable dresser sofa")},
	{"lettuce", names("kitchen"), clean | cool | slice,
		names("countertop diningtable fridge garbagecan sinkbasin")},
	{"mug", names("bedroom kitchen"), clean | heat | cool | vessel,
		names(dishes + " coffeemachine desk drawer microwave")},
	{"newspaper", names("livingroom"), 0, names(small + " garbagecan")},
	{"pan", names("kitchen"), clean | cool | vessel, names(pans)},
	{"pen", names("bedroom"), 0, names("desk drawer dresser garbagecan shelf sidetable")},
	{"pencil", names("bedroom"), 0, names("desk drawer dresser garbagecan shelf sidetable")},
	{"peppershaker", names("kitchen"), 0, names(spices)},
	{"pillow", names("bedroom livingroom"), 0, names("armchair bed sofa")},
	{"plate", names("kitchen"), clean | heat | cool | vessel, names(dishes + " microwave")},
	{"pot", names("kitchen"), clean | cool | vessel, names(pans)},
	{"potato", names("kitchen"), clean | heat | cool | slice, names(food)},
	{"remotecontrol", names("livingroom"), 0, names(small)},
	{"saltshaker", names("kitchen"), 0, names(spices)},
	{"soapbar", names("bathroom"), clean, names(bath)},
	{"soapbottle", names("bathroom kitchen"), 0, names(bath)},
	{"spatula", names("kitchen"), clean, names(cutlery)},
	{"spoon", names("kitchen"), clean, names(cutlery)},
	{"spraybottle", names("bathroom"), 0, names(bath)},
	{"statue", names("livingroom"), 0, names(surfaces + " safe")},
	{"tissuebox", names("bedroom livingroom"), 0, names(surfaces + " cabinet drawer")},
	{"toiletpaper", names("bathroom"), 0, names(bath + " toiletpaperhanger")},
	{"tomato", names("kitchen"), clean | heat | cool | slice, names(food)},
	{"towel", names("bathroom"), 0, names("bathtubbasin towelholder")},
	{"vase", names("livingroom"), 0, names(surfaces + " cabinet safe")},
	{"watch", names("bedroom livingroom"), 0, names(small)},
	{"winebottle", names("kitchen"), cool, names("cabinet countertop diningtable fridge garbagecan shelf")},
}

func names(text string) []string { return strings.Fields(text) }

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
