package searchqa

import "strings"

// The parts of names. Each is one token of a tokenizer that this program makes, so that a small policy copies a name in
// two tokens.
var (
	firstNames = parts(`Ada Alma Amos Anton Arlo Basil Bruno Carla Cecil Clara Conrad Cora Cyril Dora Edgar Edith Elias
		Ellen Emil Enid Ernst Esther Felix Fiona Flora Franz Freda Gideon Greta Gustav Hanna Harald Hector Hilda Hugo
		Ida Ingrid Irene Isaac Ivor Jasper Joan Judith Julia Karl Klara Laura Leo Lena Lionel Lydia Magda Marta Max
		Mira Nadia Nils Nora Olga Oscar Paula Petra Quentin Ralph Rosa Rufus Ruth Selma Sigrid Simon Stella Sven
		Tessa Theo Thora Tobias Ursula Vera Victor Wanda Wilma Yvonne Zelda`)
	lastNames = parts(`Abbot Adler Archer Baker Barlow Becker Bell Benson Blake Bloom Booth Bowen Brandt Brook Bryce
		Carver Chase Cobb Conway Cooper Craig Crane Curtis Dale Danner Dawson Decker Drake Dunbar Eaton Ebert Ellis
		Engel Fabian Falk Farrow Fisher Foster Fowler Frost Fuller Gable Garner Gibbs Glover Graves Greer Grove Haas
		Hale Harmon Hawkins Heller Hobbs Holt Horne Hoyt Huber Hurst Irving Jarvis Jensen Keller Kemp Kern Kirby Klein
		Knox Kramer Lambert Lang Larkin Lawson Lemke Lowell Lund Maddox Marsh Mercer Meyer Mills Moran Mott Nash Nolan
		Norris Oakes Olsen Osborn Palmer Parrish Pike Porter Pratt Quill Ramsey Reeves Rhodes Ritter Roth Rowe Sawyer
		Schmid Seaton Sharp Shaw Sloan Snow Spence Stark Steele Stone Swift Tanner Thorne Trent Turner Vance Vogel
		Wagner Walsh Weaver Webb Wells Whelan Wilder Winter Wolfe Wyatt Yates Zeller`)
	cityStarts = parts(`Alder Ander Bal Bram Cal Cor Dal Dern Dor Ebel Eger Fal Fen Gal Gorm Had Hel Iber Ken Kor Lam
		Lin Mal Mer Mor Nar Nes Nor Oster Pel Pern Ras Rov Sal Sel Sor Tar Tel Tor Ulm Val Ver Vol Wald Wen Yar Zar
		Zel`)
	cityEnds     = parts(`bach bridge bury dale ford gate ham haven holm mouth port rode stad ton wick worth`)
	riverStarts  = parts(`Ae Bri Cre Dri Esk Fli Gre Ith Jor Kle Lys Myr Nid Ous Pri Qua Rhi Sty Tri Urs Vis Whi Yth`)
	riverEnds    = parts(`ane ar da el enne ia is one ra var`)
	countryStart = parts(`Aqui Bera Carda Dalma Estra Fres Galda Hesper Ilir Jutha Karel Livon`)
	countryEnds  = parts(`land mark nia ria stan via`)
	adjectives   = parts(`Amber Ancient Bitter Blind Brazen Broken Burning Crimson Distant Empty Endless Faded Final
		Frozen Gentle Golden Hidden Hollow Iron Ivory Little Lonely Long Lost Marble Narrow Painted Pale Patient Quiet
		Restless Scarlet Second Secret Seventh Silent Silver Sleeping Stolen Tall Velvet Wandering White Wooden`)
	nouns = parts(`Acre Anchor Archive Balcony Bargain Beacon Cellar Chapel Compass Corridor Courier Engine Errand
		Ferry Garden Gardener Harbour Harvest Hour Island Journey Lantern Ledger Letter Lighthouse Meadow Mirror Mountain
		Orchard Passage Pilgrim Promise Quarry Railway Reader Sailor Season Shadow Shepherd Signal Staircase Station
		Storm Summer Tower Traveller Valley Voyage Window Witness`)
	companyEnds = parts(`Brewery Chemicals Engines Foundry Glassworks Instruments Mills Optics Papers Press Railways
		Shipyard Steel Textiles Tobacco Watches`)
	occupations = parts(`architect astronomer botanist cellist chemist composer engineer geologist historian lawyer
		mathematician novelist painter philosopher physician playwright poet sculptor surveyor translator`)
	workKinds = parts(`ballad ballet cantata comedy film novel play symphony`)
	languages = parts(`Aric Belian Cerish Dovan Eldic Ferran Gothan Hestic Istrian Jovic Kelish Lorran`)
)

func parts(text string) []string { return strings.Fields(text) }

// pairs returns every combination of two parts, in order, with a text between them.
func pairs(starts []string, between string, ends []string) []string {
	out := make([]string, 0, len(starts)*len(ends))
	for _, s := range starts {
		for _, e := range ends {
			out = append(out, s+between+e)
		}
	}
	return out
}
